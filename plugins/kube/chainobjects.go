package kube

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// AddToChains puts an object of any kind where it belongs in objects. Kinds
// that no chain is made of are kept as owners only.
func AddToChains(objects *chain.Objects, object *unstructured.Unstructured) error {
	group := object.GroupVersionKind().Group
	objects.KEDAVersion = cmp.Or(objects.KEDAVersion, kedaVersionIn(object))
	switch kind := object.GetKind(); {
	case kind == "HorizontalPodAutoscaler" && group == "autoscaling":
		var hpa autoscalingv2.HorizontalPodAutoscaler
		if err := convert(object, &hpa); err != nil {
			return err
		}
		objects.HPAs = append(objects.HPAs, hpa)
	case kind == "ScaledObject" && group == "keda.sh":
		so, err := keda.Parse(object.Object)
		if err != nil && object.GetName() != "" {
			return fmt.Errorf("%w (%s)", err, object.GetName())
		}
		if err != nil {
			return err
		}
		objects.ScaledObjects = append(objects.ScaledObjects, so)
	case kind == "Pod" && group == "":
		var pod corev1.Pod
		if err := convert(object, &pod); err != nil {
			return err
		}
		objects.Pods = append(objects.Pods, pod)
	case kind == "Event" && group == "":
		var event corev1.Event
		if err := convert(object, &event); err != nil {
			return err
		}
		objects.Events = append(objects.Events, event)
	case kind == "Lease" && group == "coordination.k8s.io":
		var lease coordinationv1.Lease
		if err := convert(object, &lease); err != nil {
			return err
		}
		if lease.Namespace == chain.LeaderNamespace && lease.Name == chain.LeaderName {
			objects.Leader = chain.LeaderOf(&lease)
		}
	case hasReplicas(object):
		objects.Workloads = append(objects.Workloads, WorkloadOf(object))
	default:
		objects.Owners = append(objects.Owners, ownedOf(object))
	}
	return nil
}

func convert(object *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		return fmt.Errorf("read %s %s: %w", strings.ToLower(object.GetKind()), object.GetName(), err)
	}
	return nil
}

// hasReplicas tells a workload from an owner: what can be scaled has
// spec.replicas. An InferenceService has none, an LLMInferenceService may.
func hasReplicas(object *unstructured.Unstructured) bool {
	if object.GroupVersionKind().Group == "serving.kserve.io" {
		return false
	}
	_, found, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
	return found && err == nil
}

func ownedOf(object *unstructured.Unstructured) chain.Owned {
	owned := chain.Owned{Ref: chain.Ref{
		APIVersion: object.GetAPIVersion(),
		Kind:       object.GetKind(),
		Namespace:  object.GetNamespace(),
		Name:       object.GetName(),
		UID:        string(object.GetUID()),
	}}
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		owned.Controller = &chain.Ref{APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: object.GetNamespace(), Name: owner.Name, UID: string(owner.UID)}
	}
	return owned
}

// WorkloadOf reads a scale target that keeps its counts where Deployments do.
func WorkloadOf(object *unstructured.Unstructured) chain.Workload {
	workload := chain.Workload{
		Owned:    ownedOf(object),
		Spec:     number(object, "spec", "replicas"),
		Status:   number(object, "status", "replicas"),
		Role:     roleOf(object),
		Selector: selectorOf(object),
		Surge:    surgeOf(object),
		Changed:  changedAt(object.GetManagedFields()),
		Writer:   replicasWriter(object.GetManagedFields()),
	}
	// These kinds leave the count away where it is 0; of others that is not known.
	counts := slices.Contains([]string{"Deployment", "StatefulSet", "ReplicaSet", "LeaderWorkerSet"}, object.GetKind())
	if ready := number(object, "status", "readyReplicas"); ready > 0 || workload.Status == 0 || counts {
		workload.Ready = &ready
	}
	if updated, found, err := unstructured.NestedInt64(object.Object, "status", "updatedReplicas"); (found && err == nil) || workload.Status == 0 {
		workload.Updated = new(int32(updated))
	}
	return workload
}

func number(object *unstructured.Unstructured, path ...string) int32 {
	n, _, err := unstructured.NestedInt64(object.Object, path...)
	if err != nil {
		return 0
	}
	return int32(n)
}

// surgeOf reads a Deployment's maxSurge, 25 % of its size unless set, rounded up.
// Other workloads are taken to have none.
func surgeOf(object *unstructured.Unstructured) int32 {
	if object.GetKind() != "Deployment" {
		return 0
	}
	if kind, _, _ := unstructured.NestedString(object.Object, "spec", "strategy", "type"); kind == "Recreate" {
		return 0
	}
	surge := intstr.FromString("25%")
	switch set, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "strategy", "rollingUpdate", "maxSurge"); set := set.(type) {
	case int64:
		surge = intstr.FromInt32(int32(set))
	case string:
		surge = intstr.FromString(set)
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(&surge, int(number(object, "spec", "replicas")), true)
	if err != nil {
		return 0
	}
	return int32(n)
}

// changedAt is the newest time of managedFields.
func changedAt(entries []metav1.ManagedFieldsEntry) time.Time {
	var newest time.Time
	for _, entry := range entries {
		if entry.Time != nil && entry.Time.After(newest) {
			newest = entry.Time.Time
		}
	}
	return newest
}

// roleOf reads the role that KServe gives the parts of a disaggregated
// service; a service of one part has the role "both", which is none here.
func roleOf(object *unstructured.Unstructured) string {
	switch role := object.GetLabels()["llm-d.ai/role"]; role {
	case "decode", "prefill":
		return role
	}
	return ""
}

func selectorOf(object *unstructured.Unstructured) string {
	content, found, err := unstructured.NestedMap(object.Object, "spec", "selector")
	if !found || err != nil {
		text, _, _ := unstructured.NestedString(object.Object, "status", "selector")
		return text
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &selector); err != nil {
		return ""
	}
	return metav1.FormatLabelSelector(&selector)
}

// replicasWriter finds the entry of managedFields that last wrote spec.replicas:
// who changes a value takes it from all others, so that an owner through the
// scale subresource, which writes nothing else, is the last; among others the
// newest entry, whose time may be that of another field.
func replicasWriter(entries []metav1.ManagedFieldsEntry) *chain.Writer {
	var writer *chain.Writer
	for _, entry := range entries {
		if entry.FieldsV1 == nil || entry.Subresource == "status" {
			continue
		}
		var fields struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			continue
		}
		if _, owns := fields.Spec["f:replicas"]; !owns {
			continue
		}
		next := &chain.Writer{Manager: entry.Manager, Subresource: entry.Subresource}
		if entry.Time != nil {
			next.Time = entry.Time.Time
		}
		if writer == nil || wroteAfter(next, writer) {
			writer = next
		}
	}
	return writer
}

func wroteAfter(a, b *chain.Writer) bool {
	if scales := a.Subresource == "scale"; scales != (b.Subresource == "scale") {
		return scales
	}
	return a.Time.After(b.Time)
}
