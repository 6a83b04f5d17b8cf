package chain

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

func scaledObject(name, target string, owner *keda.OwnerReference) keda.ScaledObject {
	so := keda.ScaledObject{Metadata: keda.Metadata{Name: name, UID: "so-" + name}, Spec: keda.Spec{ScaleTargetRef: keda.TargetRef{Name: target}}}
	if owner != nil {
		so.Metadata.OwnerReferences = []keda.OwnerReference{*owner}
	}
	return so
}

func hpaFor(name, target, scaledObject string) autoscalingv2.HorizontalPodAutoscaler {
	hpa := autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: name}}
	hpa.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: target}
	if scaledObject != "" {
		yes := true
		hpa.OwnerReferences = []metav1.OwnerReference{{APIVersion: "keda.sh/v1alpha1", Kind: "ScaledObject", Name: scaledObject, UID: types.UID("so-" + scaledObject), Controller: &yes}}
	}
	return hpa
}

func deployment(name string, owner *Ref) Workload {
	return Workload{Owned: Owned{Ref: Ref{APIVersion: "apps/v1", Kind: "Deployment", Name: name}, Controller: owner}, Selector: "app=" + name}
}

func names(chain Chain) []string {
	var out []string
	for _, link := range chain.Links() {
		out = append(out, link.Kind+"/"+link.Name)
	}
	return out
}

// platform is a namespace with the shapes that occur: a service whose owner
// made the workload only, a disaggregated service that made two of each, an
// HPA without KEDA, and a workload that nothing scales.
func platform() Objects {
	yes := true
	isvc := &Ref{APIVersion: "serving.kserve.io/v1beta1", Kind: "InferenceService", Name: "r1"}
	llm := &keda.OwnerReference{APIVersion: "serving.kserve.io/v1alpha2", Kind: "LLMInferenceService", Name: "pd", Controller: &yes}
	llmRef := &Ref{APIVersion: llm.APIVersion, Kind: llm.Kind, Name: llm.Name}
	return Objects{
		ScaledObjects: []keda.ScaledObject{
			scaledObject("r1", "r1-predictor", nil),
			scaledObject("pd-kserve-keda", "pd-kserve", llm),
			scaledObject("pd-kserve-prefill-keda", "pd-kserve-prefill", llm),
		},
		HPAs: []autoscalingv2.HorizontalPodAutoscaler{
			hpaFor("keda-hpa-r1", "r1-predictor", "r1"),
			hpaFor("keda-hpa-pd", "pd-kserve", "pd-kserve-keda"),
			hpaFor("keda-hpa-pd-prefill", "pd-kserve-prefill", "pd-kserve-prefill-keda"),
			hpaFor("web", "web", ""),
		},
		Workloads: []Workload{
			deployment("pd-kserve", llmRef), deployment("pd-kserve-prefill", llmRef),
			deployment("r1-predictor", isvc), deployment("static", nil), deployment("web", nil),
		},
	}
}

func TestFind(t *testing.T) {
	r1 := []string{"InferenceService/r1", "ScaledObject/r1", "HorizontalPodAutoscaler/keda-hpa-r1", "Deployment/r1-predictor"}
	decode := []string{"LLMInferenceService/pd", "ScaledObject/pd-kserve-keda", "HorizontalPodAutoscaler/keda-hpa-pd", "Deployment/pd-kserve"}
	prefill := []string{"LLMInferenceService/pd", "ScaledObject/pd-kserve-prefill-keda", "HorizontalPodAutoscaler/keda-hpa-pd-prefill", "Deployment/pd-kserve-prefill"}
	tests := map[string]struct {
		ref  Ref
		want [][]string
	}{
		"from the service":          {Ref{APIVersion: "serving.kserve.io/", Kind: "InferenceService", Name: "r1"}, [][]string{r1}},
		"from the scaledobject":     {Ref{APIVersion: "keda.sh/", Kind: "ScaledObject", Name: "r1"}, [][]string{r1}},
		"from the hpa":              {Ref{APIVersion: "autoscaling/", Kind: "HorizontalPodAutoscaler", Name: "keda-hpa-r1"}, [][]string{r1}},
		"from the deployment":       {Ref{APIVersion: "apps/", Kind: "Deployment", Name: "r1-predictor"}, [][]string{r1}},
		"disaggregated":             {Ref{Kind: "LLMInferenceService", Name: "pd"}, [][]string{decode, prefill}},
		"one part of it":            {Ref{Kind: "Deployment", Name: "pd-kserve-prefill"}, [][]string{prefill}},
		"without KEDA":              {Ref{Kind: "HorizontalPodAutoscaler", Name: "web"}, [][]string{{"HorizontalPodAutoscaler/web", "Deployment/web"}}},
		"static":                    {Ref{Kind: "Deployment", Name: "static"}, [][]string{{"Deployment/static"}}},
		"of another group":          {Ref{APIVersion: "other.io/v1", Kind: "Deployment", Name: "static"}, nil},
		"no such name":              {Ref{Kind: "Deployment", Name: "nobody"}, nil},
		"same name of another kind": {Ref{Kind: "StatefulSet", Name: "r1"}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got [][]string
			for _, chain := range platform().Find(test.ref) {
				got = append(got, names(chain))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOwnersClimb(t *testing.T) {
	objects := platform()
	app := &Ref{APIVersion: "apps.test/v1", Kind: "App", Name: "top"}
	objects.Owners = []Owned{{Ref: Ref{APIVersion: "serving.kserve.io/v1beta1", Kind: "InferenceService", Name: "r1"}, Controller: app}}
	got := names(objects.Find(Ref{Kind: "ScaledObject", Name: "r1"})[0])
	if diff := cmp.Diff([]string{"App/top", "InferenceService/r1", "ScaledObject/r1", "HorizontalPodAutoscaler/keda-hpa-r1", "Deployment/r1-predictor"}, got); diff != "" {
		t.Error(diff)
	}
	// Owners that own each other end the climb.
	objects.Owners = append(objects.Owners, Owned{Ref: *app, Controller: app})
	if got := names(objects.Find(Ref{Kind: "ScaledObject", Name: "r1"})[0]); len(got) > 12 {
		t.Errorf("got %v", got)
	}
}

// TestNamespaces: objects of one name in two namespaces are two chains, whatever
// their order, each with its own workload, pods and events.
func TestNamespaces(t *testing.T) {
	in := func(namespace string, size int32) Objects {
		so, hpa, w := scaledObject("x", "x", nil), hpaFor("keda-hpa-x", "x", ""), deployment("x", nil)
		so.Metadata.UID = ""
		so.Metadata.Namespace, hpa.Namespace, w.Namespace, w.Spec = namespace, namespace, namespace, size
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: namespace, Namespace: namespace, Labels: map[string]string{"app": "x"}}}
		event := corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "HorizontalPodAutoscaler", Name: hpa.Name, Namespace: namespace}}
		return Objects{ScaledObjects: []keda.ScaledObject{so}, HPAs: []autoscalingv2.HorizontalPodAutoscaler{hpa}, Workloads: []Workload{w}, Pods: []corev1.Pod{pod}, Events: []corev1.Event{event}}
	}
	join := func(a, b Objects) Objects {
		return Objects{
			ScaledObjects: append(a.ScaledObjects, b.ScaledObjects...), HPAs: append(a.HPAs, b.HPAs...), Workloads: append(a.Workloads, b.Workloads...),
			Pods: append(a.Pods, b.Pods...), Events: append(a.Events, b.Events...),
		}
	}
	for name, all := range map[string]Objects{"in order": join(in("a", 3), in("b", 6)), "reversed": join(in("b", 6), in("a", 3))} {
		chains := all.All()
		if len(chains) != 2 {
			t.Fatalf("%s: %d chains", name, len(chains))
		}
		for i, want := range []struct {
			namespace string
			size      int32
		}{{"a", 3}, {"b", 6}} {
			got := chains[i]
			if got.Target.Namespace != want.namespace || got.Workload.Spec != want.size || got.HPA.Namespace != want.namespace || len(got.Rivals) != 0 ||
				len(got.Pods) != 1 || got.Pods[0].Name != want.namespace || len(got.Events) != 1 || got.Events[0].InvolvedObject.Namespace != want.namespace {
				t.Errorf("%s: got %+v", name, got)
			}
		}
		if only := all.In("b").All(); len(only) != 1 || only[0].Workload.Spec != 6 {
			t.Errorf("%s: in b: %+v", name, only)
		}
	}
}

// TestScaledObjectsAreRivals: in manifests no HPA says that two scalers have one
// target.
func TestScaledObjectsAreRivals(t *testing.T) {
	paused := scaledObject("paused", "x", nil)
	paused.Metadata.Annotations = map[string]string{"autoscaling.keda.sh/paused": "true"}
	objects := Objects{ScaledObjects: []keda.ScaledObject{scaledObject("a", "x", nil), scaledObject("b", "x", nil), paused}, HPAs: []autoscalingv2.HorizontalPodAutoscaler{hpaFor("mine", "x", "")}}
	want := map[string][]string{"a": {"mine", "b"}, "b": {"mine", "a"}, "paused": nil, "mine": {"a", "b"}}
	for _, link := range objects.All() {
		var rivals []string
		for _, ref := range link.Rivals {
			rivals = append(rivals, ref.Name)
		}
		if name := link.Links()[0].Name; !cmp.Equal(want[name], rivals) {
			t.Errorf("%s: got %v", name, rivals)
		}
	}
}

func TestRivals(t *testing.T) {
	objects := platform()
	objects.HPAs = append(objects.HPAs, hpaFor("mine", "r1-predictor", ""))
	chains := objects.Find(Ref{Kind: "Deployment", Name: "r1-predictor"})
	if len(chains) != 2 || len(chains[0].Rivals) != 1 || chains[0].Rivals[0].Name != "mine" {
		t.Errorf("got %d chains, %+v", len(chains), chains)
	}
}

func TestPodsOf(t *testing.T) {
	pod := func(name string, labels map[string]string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	pods := []corev1.Pod{pod("a", map[string]string{"app": "x", "tier": "gpu"}), pod("b", map[string]string{"app": "y"})}
	tests := map[string]struct {
		selector string
		want     int
		unknown  bool
	}{
		"one":          {"app=x", 1, false},
		"double sign":  {"app==x", 1, false},
		"both":         {"app=x,tier=gpu", 1, false},
		"none":         {"app=z", 0, false},
		"set operator": {"app in (x,y)", 0, true},
		"not equal":    {"app!=x", 0, true},
		"empty":        {"", 0, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := podsOf(pods, "", test.selector)
			if len(got) != test.want || (got == nil) != test.unknown {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestReady(t *testing.T) {
	pod := func(phase corev1.PodPhase, ready corev1.ConditionStatus) corev1.Pod {
		return corev1.Pod{Status: corev1.PodStatus{Phase: phase, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}}
	}
	leaving := pod(corev1.PodRunning, corev1.ConditionTrue)
	leaving.DeletionTimestamp = &metav1.Time{}
	got := Ready([]corev1.Pod{pod(corev1.PodRunning, "True"), pod(corev1.PodRunning, "False"), pod(corev1.PodPending, "True"), leaving, {}})
	if got != 2 {
		t.Errorf("got %d, want 2: one that terminates counts", got)
	}
}
