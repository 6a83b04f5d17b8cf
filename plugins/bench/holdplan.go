package bench

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

const (
	annotationPaused         = "autoscaling.keda.sh/paused"
	annotationPausedReplicas = "autoscaling.keda.sh/paused-replicas"
	// annotationHold marks what a run holds, for people and for other runs.
	annotationHold = "kubectl-inference.io/hold"
)

// paused reads KEDA's annotations: paused-replicas pauses whatever its value,
// paused unless its value says no.
func paused(annotations map[string]string) bool {
	if _, given := annotations[annotationPausedReplicas]; given {
		return true
	}
	text, given := annotations[annotationPaused]
	value, err := strconv.ParseBool(text)
	return given && (err != nil || value)
}

// The time that a hold lasts beyond what its run is planned to take: stuck
// requests, a slow start, pods that are replaced.
const (
	holdFactor = 2
	holdMargin = 30 * time.Minute
	// holdStart is how long the run's Job may take to come: replicas that are
	// missing load their model first.
	holdStart = readyTime + 5*time.Minute
)

// holdPlan says how the replicas of a scaler's target are held in the way that
// its owner allows, as seen on the owners' real controllers: a ScaledObject is
// paused, also that of an InferenceService, which leaves its annotations alone
// until its own spec changes; an LLMInferenceService reverts anything on its
// ScaledObject, so its own range is narrowed; an HPA's range is narrowed, or that
// of the InferenceService that made it. No annotation is put on a KServe object:
// on an InferenceService it would restart the pods.
func holdPlan(s scaler, plan record.BenchPlan, job string, replicas int32) (record.HoldPlan, error) {
	hold := holding{record.HoldPlan{
		TypeMeta: record.Meta(record.KindHoldPlan), Run: plan.Run, Job: job, Replicas: replicas,
		StartSeconds: holdStart.Seconds(), Seconds: holdFactor*plan.TotalSeconds() + (holdStart + holdMargin).Seconds(),
	}}
	refuse := func(hint, format string, args ...any) (record.HoldPlan, error) {
		return record.HoldPlan{}, failure.New(failure.Usage, hint, "hold scaling of %s: "+format, append([]any{s}, args...)...)
	}
	if replicas < 1 {
		return refuse("give the number: --hold-scaling=1", "the target has no replica now")
	}
	owner, kind := s.owner, ""
	if owner != nil {
		kind = owner.GetKind()
	}
	switch isScaledObject := s.object.GetKind() == "ScaledObject"; {
	case kind == "LLMInferenceService":
		path := []string{"spec", "scaling"}
		if strings.HasSuffix(s.target, "-prefill") {
			path = []string{"spec", "prefill", "scaling"}
		}
		if scaling, _, _ := unstructured.NestedMap(owner.Object, path...); scaling["maxReplicas"] == nil {
			return refuse("narrow the range in the LLMInferenceServiceConfig that it inherits from, and give --allow-scaling", "LLMInferenceService %s has no range of its own", owner.GetName())
		}
		hold.set(owner, "llminferenceservices")
		hold.narrow(owner, replicas, path, "minReplicas", "maxReplicas")
	case kind == "InferenceService" && !isScaledObject:
		if owner.Object["spec"] == nil {
			return refuse("ask for get on inferenceservices", "InferenceService %s cannot be read", owner.GetName())
		}
		hold.set(owner, "inferenceservices")
		hold.narrow(owner, replicas, []string{"spec", "predictor"}, "minReplicas", "maxReplicas")
	case kind != "" && kind != "InferenceService":
		return refuse("hold it there, and give --allow-scaling", "%s %s made it, and this tool does not know what that leaves alone", kind, owner.GetName())
	case isScaledObject:
		hold.set(s.object, "scaledobjects")
		hold.annotate(s.object, annotationPausedReplicas, strconv.Itoa(int(replicas)))
		hold.annotate(s.object, annotationHold, plan.Run)
	default:
		hold.set(s.object, "horizontalpodautoscalers")
		hold.narrow(s.object, replicas, []string{"spec"}, "minReplicas", "maxReplicas")
		hold.annotate(s.object, annotationHold, plan.Run)
	}
	return hold.HoldPlan, nil
}

// holding is a hold plan in the making.
type holding struct{ record.HoldPlan }

func (h *holding) set(object *unstructured.Unstructured, resource string) {
	h.Object = record.HoldObject{APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Resource: resource, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// change plans one field, with what is there now as what is restored.
func (h *holding) change(object *unstructured.Unstructured, value any, path ...string) {
	now, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	h.Changes = append(h.Changes, record.HoldChange{Path: path, Before: now, Held: value})
}

func (h *holding) annotate(object *unstructured.Unstructured, name, value string) {
	h.change(object, value, "metadata", "annotations", name)
}

func (h *holding) narrow(object *unstructured.Unstructured, replicas int32, path []string, fields ...string) {
	for _, field := range fields {
		h.change(object, replicas, append(append([]string{}, path...), field)...)
	}
}
