package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/hold"
	"github.com/kubectl-inference/kubectl-inference/plugins/jobrun"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
)

const (
	// holdCurrent is --hold-scaling without a number.
	holdCurrent = "current"
	// readyTime is how long the held replicas may take until they are Ready.
	readyTime = 20 * time.Minute
	lookEvery = time.Second
	// heldTime is how long the hold's own pod may take to start and write.
	heldTime = 3 * time.Minute
	undoTime = 90 * time.Second
	// holdLosses is how many pods of the hold may be lost.
	holdLosses = 100
)

// validateScaling refuses flags of scaling that exclude each other.
func (o *options) validateScaling() error {
	switch {
	case o.holdScaling == "":
		return nil
	case o.allowScaling:
		return failure.New(failure.Usage, "leave out one of the two", "read --hold-scaling and --allow-scaling: they exclude each other")
	case o.local:
		return failure.New(failure.Usage, "leave out --local: what gives scaling back runs beside the Job", "read --hold-scaling: it works for Jobs only")
	case len(o.target) == 0:
		return failure.New(failure.Usage, "give the target too, such as isvc/NAME --url URL", "read --hold-scaling: --url alone does not say what is scaled")
	case o.holdScaling == holdCurrent:
		return nil
	}
	if n, err := strconv.ParseInt(o.holdScaling, 10, 32); err != nil || n < 1 || n > 1000 {
		return failure.New(failure.Usage, "write --hold-scaling for what there is now, or --hold-scaling=1", "read --hold-scaling: %q is not a number of replicas from 1 to 1000", o.holdScaling)
	}
	return nil
}

// scaling decides what becomes of the target's autoscaler. The returned plan is
// nil where nothing has to be held.
func (o *options) scaling(ctx context.Context, at place, plan *record.BenchPlan) (*record.HoldPlan, error) {
	if by, scaling := heldBy(at.scaler); by == plan.Run {
		// The same run again: it may be under way, and its plan says so.
		plan.Scaling = scaling
		return nil, nil
	} else if by != "" {
		return nil, failure.New(failure.Usage, fmt.Sprintf("wait for it, or stop it: kubectl inference bench cancel %s -n %s", by, at.scaler.object.GetNamespace()),
			"bench: run %s holds %s, and gives scaling back when it ends", by, at.scaler)
	}
	if at.scaler == nil || !at.scaler.live() {
		if o.holdScaling != "" && at.unread == "" {
			o.streams.Say("nothing scales the target by itself: there is nothing to hold")
		}
		if at.unread != "" {
			o.streams.Warn("cannot list %s: whether something scales the target is not known; a case in which replicas change is not valid", at.unread)
		}
		return nil, nil
	}
	found := at.scaler
	plan.Scaling = &record.BenchScaling{Mode: record.ScalingAllowed, Object: found.String()}
	if o.allowScaling {
		return nil, nil
	}
	if o.holdScaling == "" {
		text := fmt.Sprintf("%s scales the target between %d and %d replicas while it is measured", found, found.minimum, found.maximum)
		const hint = "add --hold-scaling to keep the number of replicas, and to give scaling back afterwards whatever happens\nor --allow-scaling to measure it as it is: a case in which replicas change is not valid"
		if o.dryRun {
			o.streams.Warn("%s: the run would be refused without --hold-scaling or --allow-scaling", text)
			return nil, nil
		}
		return nil, failure.New(failure.Usage, hint, "bench: %s", text)
	}
	now, err := o.workload(ctx, found)
	if err != nil {
		return nil, err
	}
	replicas, _, _ := unstructured.NestedInt64(now.Object, "spec", "replicas")
	if o.holdScaling != holdCurrent {
		replicas, _ = strconv.ParseInt(o.holdScaling, 10, 32) // validated
	}
	planned, err := holdPlan(*found, *plan, o.spec(plan.Run, found.object.GetNamespace()).Name(), int32(replicas))
	if err != nil {
		return nil, err
	}
	if are(now, planned.Replicas) {
		planned.StartSeconds = heldTime.Seconds()
	}
	plan.Scaling = &record.BenchScaling{Mode: record.ScalingHeld, Object: planned.Object.String(), Replicas: planned.Replicas}
	return &planned, nil
}

// heldBy returns the run that holds a scaler, "" for none.
func heldBy(found *scaler) (run string, scaling *record.BenchScaling) {
	if found == nil {
		return "", nil
	}
	annotations := found.object.GetAnnotations()
	replicas := found.minimum
	if n, err := strconv.ParseInt(annotations[annotationPausedReplicas], 10, 32); err == nil {
		replicas = n
	}
	object := record.HoldObject{Kind: found.object.GetKind(), Name: found.object.GetName()}
	return annotations[annotationHold], &record.BenchScaling{Mode: record.ScalingHeld, Object: object.String(), Replicas: int32(replicas)}
}

func (o *options) spec(run, namespace string) jobrun.Spec {
	return jobrun.Spec{Command: "bench", Run: run, Namespace: namespace}
}

func (o *options) workload(ctx context.Context, found *scaler) (*unstructured.Unstructured, error) {
	client, err := o.factory.Dynamic()
	if err != nil {
		return nil, err
	}
	mapper, err := o.factory.Mapper()
	if err != nil {
		return nil, err
	}
	kind := schema.FromAPIVersionAndKind(found.apiVersion, found.kind)
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, kube.Explain(err, "find %s %s", found.kind, found.target)
	}
	object, err := client.Resource(mapping.Resource).Namespace(found.object.GetNamespace()).Get(ctx, found.target, metav1.GetOptions{})
	if err != nil {
		return nil, kube.Explain(err, "get %s %s", found.kind, found.target)
	}
	return object, nil
}

// holdFor holds for a run; one that is under way already has its hold.
func (o *options) holdFor(ctx context.Context, found *scaler, planned record.HoldPlan, run jobrun.Spec) (undo func() error, err error) {
	running, err := jobrun.UnderWay(ctx, o.factory, run)
	if err != nil {
		return nil, err
	}
	if running {
		return func() error { return nil }, nil
	}
	return o.hold(ctx, found, planned)
}

// hold starts the Job that holds scaling and waits until the replicas are there.
// Where that does not come about, the Job is removed: it restores on its way out.
func (o *options) hold(ctx context.Context, found *scaler, planned record.HoldPlan) (undo func() error, err error) {
	spec := jobrun.Spec{
		Command: "hold", Run: planned.Run, Namespace: planned.Object.Namespace, Plan: planned, CallsAPI: true, Retries: holdLosses,
		Memory: 96 << 20, Deadline: time.Duration((planned.Seconds + holdMargin.Seconds()) * float64(time.Second)),
	}
	o.job.Apply(&spec)
	// It writes, the run does not: each has an identity of its own.
	spec.ServiceAccount = ""
	undo = func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
		defer cancel()
		return jobrun.Remove(ctx, o.factory, spec)
	}
	starting, cancel := context.WithTimeout(ctx, heldTime)
	defer cancel()
	view := jobrun.NewView(o.streams)
	err = jobrun.Until(starting, o.factory, spec, hold.EventHeld, view)
	view.Close()
	if err == nil {
		err = o.wait(ctx, found, planned.Replicas)
	}
	if err != nil {
		if starting.Err() != nil && ctx.Err() == nil {
			err = failure.New(failure.Timeout, "`kubectl describe job "+spec.Name()+" -n "+spec.Namespace+"` says why its pod does not run", "hold scaling: job/%s has not begun after %v", spec.Name(), heldTime)
		}
		return nil, errors.Join(err, undo())
	}
	return undo, nil
}

// wait waits until exactly so many replicas are there and Ready.
func (o *options) wait(ctx context.Context, found *scaler, replicas int32) error {
	limit, told := time.Now().Add(readyTime), ""
	for {
		now, err := o.workload(ctx, found)
		if err != nil {
			return err
		}
		if are(now, replicas) {
			return nil
		}
		_, have, ready := counts(now)
		if line := fmt.Sprintf("waiting for %d replicas: %d of %d are ready", replicas, ready, have); line != told {
			told = line
			o.streams.Say("%s", line)
		}
		if time.Now().After(limit) {
			return failure.New(failure.Timeout, fmt.Sprintf("`kubectl get pods -n %s` shows what they wait for", now.GetNamespace()), "hold scaling: %d replicas are not ready after %v: %d of %d are", replicas, readyTime, ready, have)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}

func counts(workload *unstructured.Unstructured) (wanted, have, ready int64) {
	wanted, _, _ = unstructured.NestedInt64(workload.Object, "spec", "replicas")
	have, _, _ = unstructured.NestedInt64(workload.Object, "status", "replicas")
	ready, _, _ = unstructured.NestedInt64(workload.Object, "status", "readyReplicas")
	return wanted, have, ready
}

// are says whether exactly so many replicas are there, and Ready.
func are(workload *unstructured.Unstructured, replicas int32) bool {
	wanted, have, ready := counts(workload)
	return wanted == int64(replicas) && have == wanted && ready == wanted
}
