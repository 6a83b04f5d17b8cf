package tune

import (
	"context"
	"fmt"
	"strconv"
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

// A change has arrived when it has been in place for settled; it is looked at
// every look. Write conflicts between controllers flap for a moment.
const (
	look    = 500 * time.Millisecond
	settled = 3 * time.Second
)

// settle waits until the ScaledObject's triggers and the HPA's targets are what
// the plan says, and stay so.
func (o *options) settle(ctx context.Context, proposal record.TuningPlan) error {
	ctx, cancel := context.WithTimeout(ctx, o.settling)
	defer cancel()
	var since time.Time
	missing := "nothing was read yet"
	for {
		now, err := o.missing(ctx, proposal)
		switch {
		case err != nil && ctx.Err() == nil:
			return err
		case err != nil:
		case now == "":
			if since.IsZero() {
				since = time.Now()
			}
			if time.Since(since) >= settled {
				o.streams.Say("settled: the ScaledObject and the HPA have the change")
				return nil
			}
		default:
			since, missing = time.Time{}, now
		}
		select {
		case <-ctx.Done():
			return failure.New(failure.Timeout, "see what holds it: `kubectl describe scaledobject "+proposal.ScaledObject.Name+" -n "+proposal.ScaledObject.Namespace+"`",
				"wait for the change to arrive: %s", missing)
		case <-time.After(look):
		}
	}
}

// missing says what of the plan has not arrived, "" when all has.
func (o *options) missing(ctx context.Context, proposal record.TuningPlan) (string, error) {
	ref := proposal.ScaledObject
	object, err := o.get(ctx, chain.Ref{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name})
	if err != nil {
		return "", err
	}
	scaledObject, err := keda.Parse(object.Object)
	if err != nil {
		return "", err
	}
	for _, change := range proposal.Changes {
		if change.Index >= len(scaledObject.Spec.Triggers) || scaledObject.Spec.Triggers[change.Index].Metadata["threshold"] != change.To {
			return fmt.Sprintf("ScaledObject %s does not have threshold %s on trigger %s: its owner may have written over it", ref.Name, change.To, change.Trigger), nil
		}
	}
	client, err := o.factory.Clientset()
	if err != nil {
		return "", err
	}
	name := scaledObject.HPAName()
	hpa, err := client.AutoscalingV2().HorizontalPodAutoscalers(ref.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf("there is no HPA %s", name), nil
	}
	if err != nil {
		return "", kube.Explain(err, "get hpa %s/%s", ref.Namespace, name)
	}
	for _, change := range proposal.Changes {
		if target := targetOf(hpa, scaledObject.Spec.Triggers[change.Index].MetricName(change.Index)); target != change.To {
			return fmt.Sprintf("HPA %s has target %q for trigger %s, not %s", name, target, change.Trigger, change.To), nil
		}
	}
	return "", nil
}

// targetOf returns an external metric's target as a plain decimal, "" where the
// HPA has no such metric.
func targetOf(hpa *autoscalingv2.HorizontalPodAutoscaler, metric string) string {
	for _, spec := range hpa.Spec.Metrics {
		if spec.External == nil || spec.External.Metric.Name != metric {
			continue
		}
		quantity := spec.External.Target.AverageValue
		if spec.External.Target.Type == autoscalingv2.ValueMetricType {
			quantity = spec.External.Target.Value
		}
		if quantity != nil {
			return strconv.FormatFloat(float64(quantity.MilliValue())/1000, 'f', -1, 64)
		}
	}
	return ""
}
