package explain

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// scaledObject holds the rules about a ScaledObject as a whole.
func (f *findings) scaledObject(so keda.ScaledObject, explained record.ScalingChain) {
	if ready, known := so.Condition("Ready"); known && ready.Status != "True" {
		f.add(idNotReady, record.SeverityError, "", "kubectl describe scaledobject "+so.Metadata.Name,
			"KEDA reports Ready=%s (%s): %s", ready.Status, ready.Reason, ready.Message)
	}
	f.incomplete(so)
	f.refused(so)
	f.fallback(so, explained)
	f.zeroAndIdle(so)
	f.noQueueTime(so)
}

func (f *findings) fallback(so keda.ScaledObject, explained record.ScalingChain) {
	external := false
	for _, trigger := range so.Spec.Triggers {
		external = external || !trigger.IsResource()
	}
	switch {
	case so.Spec.Fallback == nil && external:
		severity := record.SeverityInfo
		for _, trigger := range explained.Triggers {
			if trigger.Reason == string(hpa.MetricFailed) {
				severity = record.SeverityWarning
			}
		}
		f.add(idNoFallback, severity, "", "spec.fallback: {failureThreshold: 3, replicas: N}",
			"no fallback: while a trigger fails no replica is removed, and while all fail none is added")
	case so.Spec.Fallback == nil:
	case !external:
		f.add(idFallbackOff, record.SeverityWarning, "", "remove spec.fallback, or add a trigger that it covers",
			"the fallback to %d replicas never acts: it covers no cpu or memory trigger, and there is no other", so.Spec.Fallback.Replicas)
	default:
		f.fallbackOff(so, explained)
	}
}

// fallbackOff: KEDA says in its log only that a fallback does nothing.
func (f *findings) fallbackOff(so keda.ScaledObject, explained record.ScalingChain) {
	version, replicas := keda.Newest(), so.Spec.Fallback.Replicas
	if explained.KEDA != nil && !explained.KEDA.VersionAssumed {
		version, _ = keda.ParseVersion(explained.KEDA.Version)
	}
	said := map[keda.FallbackProblem]bool{}
	for _, metric := range so.Metrics(version) {
		problem := so.FallbackProblem(version, metric.TargetType)
		if metric.Source == keda.SourceExternal && problem == keda.FallbackFine {
			f.fallbackCut(so, version, metric)
		}
		if metric.Source != keda.SourceExternal || said[problem] {
			continue
		}
		said[problem] = true
		switch problem {
		case keda.FallbackTargetNoInteger:
			f.add(idFallbackOff, record.SeverityError, "", "a whole number for scalingModifiers.target; scale the formula with it",
				"the fallback to %d replicas never acts: with scalingModifiers KEDA wants a whole target above 0, and %s is none; it says so in its log only", replicas, so.Spec.Advanced.Modifiers.Target)
		case keda.FallbackValueUnsupported:
			f.add(idFallbackOff, record.SeverityError, metric.Name, "metricType: AverageValue, or KEDA 2.18 or later",
				"the fallback to %d replicas never acts for %s: KEDA %s has none for metricType %s", replicas, metric.Name, version, metric.TargetType)
		case keda.FallbackNegative:
			f.add(idFallbackOff, record.SeverityError, "", "failureThreshold and replicas of 0 or more",
				"the fallback never acts: failureThreshold %d and replicas %d may not be negative", so.Spec.Fallback.FailureThreshold, replicas)
		}
	}
}

// fallbackCut: before 2.18 a target that is no whole number makes the fallback
// ask for less, one below 1 for nothing.
func (f *findings) fallbackCut(so keda.ScaledObject, version keda.Version, metric keda.Metric) {
	replicas := so.Spec.Fallback.Replicas
	asks := so.FallbackAsks(version, metric, replicas)
	if asks >= replicas || metric.TargetMilli == nil {
		return
	}
	severity := record.SeverityWarning
	if asks == 0 {
		severity = record.SeverityError
	}
	f.add(idFallbackOff, severity, metric.Name, "a whole number for the threshold, scaled with the query; or KEDA 2.18 or later",
		"the fallback asks for %d replicas, not %d, when %s fails: KEDA %s cuts the target %s off to a whole number", asks, replicas, metric.Name, version, number(float64(*metric.TargetMilli)/1000))
}

func (f *findings) zeroAndIdle(so keda.ScaledObject) {
	idle := so.Spec.IdleReplicaCount
	switch {
	case idle != nil && *idle >= so.Min():
		fix := "idleReplicaCount: 0"
		if so.Min() == 0 {
			fix = "remove idleReplicaCount, or minReplicaCount: 1 or more"
		}
		f.add(idIdleFlaps, record.SeverityError, "", fix,
			"idleReplicaCount %d is not below minReplicaCount %d: KEDA refuses it", *idle, so.Min())
	case idle != nil && *idle >= 1:
		f.add(idIdleFlaps, record.SeverityError, "", "idleReplicaCount: 0, or minReplicaCount: "+strconv.Itoa(int(*idle))+" without an idle count",
			"the size flaps between %d and %d: KEDA sets the idle count %d, and the HPA its minimum %d again within 15s", *idle, so.HPAMin(), *idle, so.HPAMin())
	}
	if so.Spec.CooldownPeriod != nil && so.Min() >= 1 && idle == nil {
		f.add(idCooldown, record.SeverityInfo, "", "behavior.scaleDown.stabilizationWindowSeconds paces steps down to "+strconv.Itoa(int(so.Min())),
			"cooldownPeriod %d has no effect: it delays the step to 0 or to an idle count, and the minimum is %d", *so.Spec.CooldownPeriod, so.Min())
	}
	if so.Min() >= 1 && idle == nil {
		for i, trigger := range so.Spec.Triggers {
			if trigger.Activation() > 0 {
				f.add(idActivation, record.SeverityInfo, trigger.MetricName(i), "remove it, or set minReplicaCount: 0",
					"s%d's activationThreshold %s has no effect: it decides about 0 replicas, and the minimum is %d", i, trigger.Metadata["activationThreshold"], so.Min())
			}
		}
	}
	if (so.Min() == 0 || (idle != nil && *idle == 0)) && onlyEngineMetrics(so) {
		f.add(idEngineAtZero, record.SeverityError, "", "minReplicaCount: 1, or a trigger that sees requests without a pod, such as the gateway's queue",
			"at 0 replicas nothing brings it back: every trigger reads the engine's own metrics, without a pod they are empty, and 0 is not above the activation threshold")
	}
}

// onlyEngineMetrics says that every trigger that can activate reads what only
// a running engine reports.
func onlyEngineMetrics(so keda.ScaledObject) bool {
	engine := regexp.MustCompile(`\b(vllm|sglang|tgi|trtllm|lmdeploy|DCGM_FI_DEV)[:_]`)
	any := false
	for _, trigger := range so.Spec.Triggers {
		switch {
		case trigger.IsResource():
		case trigger.Query() == "", !engine.MatchString(trigger.Query()), strings.Contains(trigger.Query(), "vector("):
			return false
		default:
			any = true
		}
	}
	return any
}

// noQueueTime: latency from when a request is scheduled hides the queue, which
// is what more replicas shorten.
func (f *findings) noQueueTime(so keda.ScaledObject) {
	blind := regexp.MustCompile(`request_inference_time|request_decode_time|request_prefill_time|time_per_output_token|inter_token_latency`)
	queue := regexp.MustCompile(`num_requests_waiting|queue|e2e_request_latency|time_to_first_token`)
	severity := record.SeverityWarning
	for _, trigger := range so.Spec.Triggers {
		if queue.MatchString(trigger.Query()) {
			severity = record.SeverityInfo
		}
	}
	for i, trigger := range so.Spec.Triggers {
		if name := blind.FindString(trigger.Query()); name != "" {
			f.add(idNoQueueTime, severity, trigger.MetricName(i), "vllm:e2e_request_latency_seconds or vllm:time_to_first_token_seconds",
				"s%d %s reads %s, which starts when a request is scheduled: a queue of any length leaves it as it is", i, trigger.Label(), name)
		}
	}
}
