package explain

import (
	"context"
	"errors"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
)

// The API groups of metrics.
const (
	groupResource = "metrics.k8s.io"
	groupCustom   = "custom.metrics.k8s.io"
	groupExternal = "external.metrics.k8s.io"
)

// apiTimeout is how long one question to a metrics API may take: KEDA asks its
// sources meanwhile.
const apiTimeout = 15 * time.Second

// metricsReader reads the metrics of one chain that the controller reads of an
// API itself.
type metricsReader struct {
	api  *kube.MetricsAPI
	link chain.Chain
	// usage is read once for all metrics of cpu and memory.
	usage    []kube.PodUsage
	usageErr error
	asked    bool
}

// readMetrics reads all metrics of the HPA but the external ones, and those too
// where they were asked for.
func (o *options) readMetrics(ctx context.Context, link chain.Chain) []freshSample {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	api, err := o.factory.MetricsAPI(link.HPA.Namespace)
	reader := metricsReader{api: api, link: link}
	var fresh []freshSample
	for i, spec := range link.HPA.Spec.Metrics {
		if spec.External != nil && !o.external && link.ScaledObject != nil {
			continue
		}
		sample := freshSample{metric: i, shown: identified(link, i)}
		problem := err
		switch {
		case problem != nil:
		case spec.External != nil && !o.external:
			problem = errors.New("its adapter may do more than read: --external-metrics asks it")
		default:
			problem = reader.read(ctx, spec, &sample)
		}
		if problem != nil {
			sample.shown.Error = problem.Error()
		}
		fresh = append(fresh, sample)
	}
	return fresh
}

// identified names a metric as the explanation does.
func identified(link chain.Chain, index int) record.FreshValue {
	metric := hpa.FromObject(link.HPA, hpa.AnyCount(), hpa.AnyCount(), hpa.Version{}, time.Time{}).Metrics[index]
	trigger := record.ScalingTrigger{Label: metric.Name}
	identify(&trigger, link, metric)
	return record.FreshValue{Index: trigger.Index, Label: trigger.Label, Metric: metric.Name}
}

func (r *metricsReader) read(ctx context.Context, spec autoscalingv2.MetricSpec, sample *freshSample) error {
	switch {
	case spec.External != nil:
		sample.shown.Via = groupExternal
		return r.external(ctx, spec.External, sample)
	case spec.Object != nil:
		sample.shown.Via = groupCustom
		object := spec.Object.DescribedObject
		value, err := r.api.OfObject(ctx, object.APIVersion, object.Kind, object.Name, spec.Object.Metric.Name, spec.Object.Metric.Selector)
		if err != nil {
			return err
		}
		sample.total(value.Value.MilliValue())
		return nil
	case r.link.Workload == nil || r.link.Workload.Selector == "":
		return errors.New("the workload's pods are not known")
	case r.link.Pods == nil:
		return errors.New("cannot list pods in " + r.link.HPA.Namespace + ": which of them are ready is not known")
	case spec.Pods != nil:
		sample.shown.Via = groupCustom
		values, err := r.api.OfPods(ctx, r.link.Workload.Selector, spec.Pods.Metric.Name, spec.Pods.Metric.Selector)
		if err != nil {
			return err
		}
		sample.samples(samplesOf(values), r.link.Pods, "FailedGetPodsMetric")
		return nil
	}
	sample.shown.Via = groupResource
	if !r.asked {
		r.asked = true
		r.usage, r.usageErr = r.api.Usage(ctx, r.link.Workload.Selector)
	}
	if r.usageErr != nil {
		return r.usageErr
	}
	if one := spec.ContainerResource; one != nil {
		sample.samples(usageOf(r.usage, one.Name, one.Container), r.link.Pods, "FailedGetContainerResourceMetric")
	} else if spec.Resource != nil {
		sample.samples(usageOf(r.usage, spec.Resource.Name, ""), r.link.Pods, "FailedGetResourceMetric")
	}
	return nil
}

func (r *metricsReader) external(ctx context.Context, spec *autoscalingv2.ExternalMetricSource, sample *freshSample) error {
	values, err := r.api.External(ctx, spec.Metric.Name, spec.Metric.Selector)
	if err != nil {
		return err
	}
	if len(values) == 0 {
		sample.seen = &hpa.Observation{State: hpa.Failed, Reason: "FailedGetExternalMetric"}
		return errors.New("the API has no value of it")
	}
	total := int64(0)
	for _, value := range values {
		total += value.Value.MilliValue()
	}
	sample.total(total)
	return nil
}

func (f *freshSample) total(milli int64) {
	value := float64(milli) / 1000
	f.shown.Value, f.seen = &value, &hpa.Observation{State: hpa.Seen, Total: &milli}
}

// samples notes the pods' samples; with none at all the controller fails.
func (f *freshSample) samples(samples map[string]hpa.Sample, pods []corev1.Pod, reason string) {
	count, sum, complete := int32(len(samples)), 0.0, true
	for _, sample := range samples {
		sum += float64(sample.Milli) / 1000
	}
	for i := range pods {
		if _, found := samples[pods[i].Name]; !found && pods[i].Status.Phase == corev1.PodRunning {
			complete = false
		}
	}
	f.shown.Pods = &count
	if count == 0 {
		f.shown.Error = "no pod has a sample"
		f.seen = &hpa.Observation{State: hpa.Failed, Reason: reason}
		return
	}
	f.shown.Value = &sum
	f.seen = &hpa.Observation{State: hpa.Seen, Samples: samples, Complete: complete}
}

// usageOf is a resource's usage by pod, or by its container of a name. As for
// the controller, a pod of which one container has no number has none.
func usageOf(pods []kube.PodUsage, name corev1.ResourceName, container string) map[string]hpa.Sample {
	samples := map[string]hpa.Sample{}
	for _, pod := range pods {
		sample := hpa.Sample{Time: pod.Timestamp.Time, Window: pod.Window.Duration}
		found, missing := false, false
		for _, c := range pod.Containers {
			if container != "" && c.Name != container {
				continue
			}
			usage, has := c.Usage[name]
			found, missing = true, missing || !has
			sample.Milli += usage.MilliValue()
		}
		if found && !missing {
			samples[pod.Metadata.Name] = sample
		}
	}
	return samples
}

// defaultWindow is what the controller takes for the window of a custom metric
// that does not say.
const defaultWindow = time.Minute

func samplesOf(values []kube.MetricValue) map[string]hpa.Sample {
	samples := map[string]hpa.Sample{}
	for _, value := range values {
		sample := hpa.Sample{Milli: value.Value.MilliValue(), Time: value.Timestamp.Time, Window: defaultWindow}
		if value.WindowSeconds != nil {
			sample.Window = time.Duration(*value.WindowSeconds) * time.Second
		}
		samples[value.DescribedObject.Name] = sample
	}
	return samples
}
