// Package hold keeps the number of replicas of a target still while a Job
// measures it, and gives scaling back when that Job has ended, is gone, or takes
// too long. It runs in a Job of its own: neither the end of the measuring pod
// nor that of the plugin leaves a target held, and a pod of the hold that is
// lost is replaced by one that finds in the plan what is to be restored.
package hold

import (
	"context"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-inference/kubectl-inference/jobs/cluster"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// Names of the events of a hold.
const (
	// EventHeld comes once the fields are written.
	EventHeld = "held"
	// EventLost is a warning: somebody undid the hold, and it was taken again.
	EventLost = "lost"
	// EventRelease says why scaling is given back.
	EventRelease = "release"
)

const (
	// maxLost is how often a hold is taken again before it is given up: another
	// controller insists on its own.
	maxLost = 20
	// releaseTime is how long a pod that is told to stop tries to restore.
	releaseTime = 45 * time.Second
)

// Deps are what a hold needs.
type Deps struct {
	Objects dynamic.Interface
	Client  kubernetes.Interface
	// Pod is where the hold itself runs.
	Pod  cluster.Pod
	Poll time.Duration
	Now  func() time.Time
	Emit func(record.Event)
}

type keeper struct {
	Deps
	plan     record.HoldPlan
	resource dynamic.ResourceInterface
	// began is when the hold's Job was made: pods are replaced, the Job is not.
	began time.Time
	seen  bool // the Job that it is for
	taken bool
	lost  int // how often it was taken again
}

// Run holds until there is a reason to give scaling back, and gives it back. An
// error of kind Interrupted means that only this pod has to go: the hold is left
// to the one that replaces it.
func Run(ctx context.Context, plan record.HoldPlan, deps Deps) (record.HoldEnd, error) {
	end := record.HoldEnd{Run: plan.Run, Left: []string{}}
	if err := plan.Validate(); err != nil {
		return end, err
	}
	group, err := schema.ParseGroupVersion(plan.Object.APIVersion)
	if err != nil {
		return end, failure.New(failure.Usage, "", "read hold plan: %w", err)
	}
	k := &keeper{Deps: deps, plan: plan, began: deps.Now()}
	k.resource = deps.Objects.Resource(group.WithResource(plan.Object.Resource)).Namespace(plan.Object.Namespace)
	if own, err := deps.Client.BatchV1().Jobs(deps.Pod.Namespace).Get(ctx, deps.Pod.Job, metav1.GetOptions{}); err == nil {
		k.began = own.CreationTimestamp.Time
	} else if apierrors.IsForbidden(err) {
		return end, k.denied(err, "get", "jobs")
	}
	why, err := k.keep(ctx)
	if err != nil {
		return end, err
	}
	end.Why = why
	k.emit(record.Info, EventRelease, fmt.Sprintf("giving scaling of %s back: %s", plan.Object, why))
	releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	left, err := k.release(releasing)
	if err != nil {
		return end, err
	}
	end.Left, end.Restored = left, len(left) == 0
	return end, nil
}

// keep takes the hold and keeps it until there is a reason to end it.
func (k *keeper) keep(ctx context.Context) (why string, err error) {
	told := false
	for {
		if why := k.over(ctx); why != "" {
			return why, nil
		}
		switch err := k.take(ctx); {
		case err == nil && !told:
			told = true
			k.emit(record.Info, EventHeld, fmt.Sprintf("%s holds %d replicas for run %s", k.plan.Object, k.plan.Replicas, k.plan.Run))
		case err != nil && ctx.Err() == nil && (failure.KindOf(err) != failure.Failed || k.lost > maxLost):
			releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
			defer cancel()
			if _, undo := k.release(releasing); undo != nil {
				return "", fmt.Errorf("%w; restore: %w", err, undo)
			}
			return "", err
		}
		select {
		case <-ctx.Done():
			if k.replaced() {
				return "", failure.New(failure.Interrupted, "", "hold %s: this pod was stopped, the next goes on", k.plan.Object)
			}
			return "the hold was stopped", nil
		case <-time.After(k.Poll):
		}
	}
}

// take writes the fields that are as they were. Blips are not an error: the next
// look tries again.
func (k *keeper) take(ctx context.Context) error {
	object, err := k.resource.Get(ctx, k.plan.Object.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return k.denied(err, "get", k.plan.Object.Resource)
	case apierrors.IsNotFound(err):
		return failure.New(failure.NotFound, "", "hold %s: it is gone", k.plan.Object)
	case err != nil:
		return err
	}
	now := stateOf(k.plan, object)
	if len(now.other) > 0 {
		return failure.New(failure.Differs, "start again: the hold is planned from what the object says now", "hold %s: somebody else has changed %s", k.plan.Object, strings.Join(names(now.other), ", "))
	}
	if len(now.before) == 0 {
		k.taken = true
		return nil
	}
	if k.taken {
		k.emit(record.Warning, EventLost, fmt.Sprintf("%s was undone by another writer and is taken again: replicas may have moved", strings.Join(names(now.before), ", ")))
		if k.lost++; k.lost > maxLost {
			return failure.New(failure.Failed, "something writes the object all the time, such as a GitOps controller: pause it there", "hold %s: it was undone %d times", k.plan.Object, maxLost)
		}
	}
	if err := k.write(ctx, object, now.before, held); err != nil {
		return err
	}
	k.taken = true
	return nil
}

func (k *keeper) write(ctx context.Context, object *unstructured.Unstructured, changes []record.HoldChange, value func(record.HoldChange) any) error {
	data, err := patch(object, changes, value)
	if err != nil {
		return err
	}
	_, err = k.resource.Patch(ctx, k.plan.Object.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: cluster.FieldManager})
	if apierrors.IsForbidden(err) {
		return k.denied(err, "patch", k.plan.Object.Resource)
	}
	if apierrors.IsInvalid(err) {
		return failure.New(failure.Usage, "", "hold %s: %w", k.plan.Object, err)
	}
	return err
}

// release restores each field that still is as it was held, and insists.
func (k *keeper) release(ctx context.Context) (left []string, err error) {
	for {
		left, err = k.restore(ctx)
		if err == nil || apierrors.IsForbidden(err) || failure.KindOf(err) == failure.Denied {
			return left, err
		}
		select {
		case <-ctx.Done():
			return nil, failure.New(failure.Failed, "", "restore %s: %w", k.plan.Object, err)
		case <-time.After(k.Poll):
		}
	}
}

func (k *keeper) restore(ctx context.Context) (left []string, err error) {
	object, err := k.resource.Get(ctx, k.plan.Object.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return []string{}, nil
	case apierrors.IsForbidden(err):
		return nil, k.denied(err, "get", k.plan.Object.Resource)
	case err != nil:
		return nil, err
	}
	now := stateOf(k.plan, object)
	if len(now.held) > 0 {
		if err := k.write(ctx, object, now.held, before); err != nil {
			return nil, err
		}
	}
	return names(now.other), nil
}

// over says why the hold is over, "" while it is not. What cannot be learned now
// is asked again.
func (k *keeper) over(ctx context.Context) string {
	age := k.Now().Sub(k.began)
	if limit := seconds(k.plan.Seconds); age > limit {
		return fmt.Sprintf("it has lasted %s, the longest that was planned", limit)
	}
	job, err := k.Client.BatchV1().Jobs(k.plan.Object.Namespace).Get(ctx, k.plan.Job, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && k.seen:
		return fmt.Sprintf("job/%s was removed", k.plan.Job)
	case apierrors.IsNotFound(err) && age > seconds(k.plan.StartSeconds):
		return fmt.Sprintf("job/%s did not come", k.plan.Job)
	case err != nil:
		return ""
	}
	k.seen = true
	if job.DeletionTimestamp != nil {
		return fmt.Sprintf("job/%s is being removed", k.plan.Job)
	}
	if ended(job) {
		return fmt.Sprintf("job/%s has ended", k.plan.Job)
	}
	return ""
}

// replaced says whether the Job goes on without this pod.
func (k *keeper) replaced() bool {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime/4)
	defer cancel()
	own, err := k.Client.BatchV1().Jobs(k.Pod.Namespace).Get(ctx, k.Pod.Job, metav1.GetOptions{})
	return err == nil && string(own.UID) == k.Pod.JobUID && own.DeletionTimestamp == nil && !ended(own)
}

// ended counts a Job whose pods are being stopped, too.
func ended(job *batchv1.Job) bool {
	for _, condition := range job.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			continue
		}
		switch condition.Type {
		case batchv1.JobComplete, batchv1.JobFailed, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet:
			return true
		}
	}
	return false
}

func (k *keeper) denied(err error, verb, resource string) error {
	return failure.New(failure.Denied, fmt.Sprintf("give it the rights: `kubectl inference manifests hold/rbac | kubectl apply -n %s -f -`", k.Pod.Namespace),
		"hold %s: %s %s: %w", k.plan.Object, verb, resource, err)
}

func (k *keeper) emit(level record.Level, name, message string) {
	k.Emit(record.Event{Time: k.Now().UTC(), Level: level, Name: name, Message: message})
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
