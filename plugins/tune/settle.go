package tune

import (
	"context"
	"fmt"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
)

// pace is how a change is waited for: it is looked at every look, and has
// arrived when it has been in place for settled. Write conflicts between
// controllers flap for a moment.
type pace struct{ look, settled time.Duration }

// settle waits until the ScaledObject's triggers and the HPA's targets are what
// the plan says, and stay so. The change is made by then: each error says so.
func (o *options) settle(parent context.Context, proposal record.TuningPlan) error {
	deadline := time.Now().Add(o.settling)
	ctx, cancel := context.WithDeadline(parent, deadline)
	defer cancel()
	var since time.Time
	missing := "nothing was read yet"
	for {
		now, err := o.look(ctx, proposal)
		switch {
		// The client's rate limiter knows that the time is up before ctx does.
		case err != nil && ctx.Err() == nil && time.Now().Before(deadline):
			return failure.Wrap(err, "the change is made; wait for it to arrive")
		case err != nil:
		case now.missing == "":
			if since.IsZero() {
				since = time.Now()
			}
			if time.Since(since) >= o.pace.settled {
				o.streams.Say("settled: %s", now.has)
				return nil
			}
		default:
			since, missing = time.Time{}, now.missing
		}
		select {
		case <-ctx.Done():
			if err := parent.Err(); err != nil {
				return failure.Wrap(err, "the change is made; wait for it to arrive")
			}
			if !since.IsZero() {
				missing = "it is there, but not for long enough to last: raise --settle-timeout"
			}
			return failure.New(failure.Timeout, "see what holds it: `kubectl describe scaledobject "+proposal.ScaledObject.Name+" -n "+proposal.ScaledObject.Namespace+"`",
				"the change is made; wait for it to arrive: %s", missing)
		case <-time.After(o.pace.look):
		}
	}
}

// arrival is how far a change has come: what it misses, else who has it.
type arrival struct{ missing, has string }

func (o *options) look(ctx context.Context, proposal record.TuningPlan) (arrival, error) {
	ref := proposal.ScaledObject
	object, err := o.get(ctx, chain.Ref{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name})
	if err != nil {
		return arrival{}, err
	}
	scaledObject, err := keda.Parse(object.Object)
	if err != nil {
		return arrival{}, err
	}
	if missing := missingInScaledObject(scaledObject, proposal.Changes); missing != "" {
		return arrival{missing: missing}, nil
	}
	if scaledObject.Pause().All {
		return arrival{has: "the ScaledObject has the change, but is paused: there is no HPA until that ends"}, nil
	}
	client, err := o.factory.Clientset()
	if err != nil {
		return arrival{}, err
	}
	name := scaledObject.HPAName()
	hpa, err := client.AutoscalingV2().HorizontalPodAutoscalers(ref.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return arrival{missing: fmt.Sprintf("there is no HPA %s", name)}, nil
	}
	if err != nil {
		return arrival{}, kube.Explain(err, "get hpa %s/%s", ref.Namespace, name)
	}
	return arrival{missing: missingInHPA(hpa, scaledObject, proposal.Changes), has: "the ScaledObject and the HPA have the change"}, nil
}

func missingInScaledObject(scaledObject keda.ScaledObject, changes []record.TuningChange) string {
	for _, change := range changes {
		var trigger keda.Trigger
		if change.Index < len(scaledObject.Spec.Triggers) {
			trigger = scaledObject.Spec.Triggers[change.Index]
		}
		if milli, ok := trigger.Threshold(); !ok || milli != milliOf(change.To) || metricType(trigger) != change.MetricType {
			return fmt.Sprintf("ScaledObject %s does not have threshold %s (%s) on trigger %s: its owner may have written over it",
				scaledObject.Metadata.Name, change.To, change.MetricType, change.Trigger)
		}
	}
	return ""
}

func metricType(trigger keda.Trigger) string {
	if trigger.PerReplica() {
		return record.MetricTypeAverageValue
	}
	return trigger.MetricType
}

// missingInHPA compares thousandths, which is what KEDA hands to the HPA.
func missingInHPA(hpa *autoscalingv2.HorizontalPodAutoscaler, scaledObject keda.ScaledObject, changes []record.TuningChange) string {
	for _, change := range changes {
		target := targetOf(hpa, scaledObject.Spec.Triggers[change.Index].MetricName(change.Index))
		switch {
		case target == nil:
			return fmt.Sprintf("HPA %s has no target for trigger %s", hpa.Name, change.Trigger)
		case target.milli != milliOf(change.To) || target.metricType != change.MetricType:
			return fmt.Sprintf("HPA %s has target %s (%s) for trigger %s, not %s (%s)", hpa.Name, thousandths(target.milli), target.metricType, change.Trigger, change.To, change.MetricType)
		}
	}
	return ""
}

// hpaTarget is an external metric's target.
type hpaTarget struct {
	milli      int64
	metricType string
}

// targetOf returns the target of an external metric, nil where the HPA has no
// such metric.
func targetOf(hpa *autoscalingv2.HorizontalPodAutoscaler, metric string) *hpaTarget {
	for _, spec := range hpa.Spec.Metrics {
		if spec.External == nil || spec.External.Metric.Name != metric {
			continue
		}
		target := spec.External.Target
		quantity := target.AverageValue
		if target.Type == autoscalingv2.ValueMetricType {
			quantity = target.Value
		}
		if quantity != nil {
			return &hpaTarget{quantity.MilliValue(), string(target.Type)}
		}
	}
	return nil
}

// milliOf reads a threshold as KEDA does, -1 where it is no number.
func milliOf(threshold string) int64 {
	milli, ok := keda.Trigger{Metadata: map[string]string{"threshold": threshold}}.Threshold()
	if !ok {
		return -1
	}
	return milli
}

func thousandths(milli int64) string {
	text := strings.TrimRight(fmt.Sprintf("%d.%03d", milli/1000, milli%1000), "0")
	return strings.TrimSuffix(text, ".")
}
