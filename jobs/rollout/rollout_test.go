package rollout

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

func TestVerify(t *testing.T) {
	const heal = "hint: heal it: run `kubectl inference sync-model` again with the same revision and destination\n"
	for name, test := range map[string]struct {
		change func(*bucket, *record.RolloutPlan)
		kind   failure.Kind
		want   string
	}{
		"complete":                   {func(*bucket, *record.RolloutPlan) {}, 0, ""},
		"the right revision":         {func(_ *bucket, p *record.RolloutPlan) { p.Model.Revision = strings.Repeat("a", 40) }, 0, ""},
		"the store knows no digests": {func(b *bucket, _ *record.RolloutPlan) { clear(b.digests) }, 0, ""},
		"no manifest": {func(b *bucket, _ *record.RolloutPlan) { b.manifest = nil }, failure.NotFound,
			"error: verify s3://models/a: it has no _MANIFEST.json, so it is not complete\nhint: finish the delivery first: `kubectl inference sync-model` writes the manifest when every file is verified\n"},
		"another revision": {func(_ *bucket, p *record.RolloutPlan) { p.Model.Revision = strings.Repeat("b", 40) }, failure.Differs,
			"error: verify s3://models/a: its manifest names revision " + strings.Repeat("a", 40) + ", not " + strings.Repeat("b", 40) + "\nhint: choose the prefix of that revision, or give --revision " + strings.Repeat("a", 40) + "\n"},
		"a file is missing":         {func(b *bucket, _ *record.RolloutPlan) { delete(b.sizes, "config.json") }, failure.Differs, "error: verify s3://models/a: config.json is missing, the manifest lists it\n" + heal},
		"a file is short":           {func(b *bucket, _ *record.RolloutPlan) { b.sizes["model.safetensors"] = 3 }, failure.Differs, "error: verify s3://models/a: model.safetensors has 3 bytes, the manifest says 11\n" + heal},
		"a file is altered":         {func(b *bucket, _ *record.RolloutPlan) { b.digests["config.json"] = "bad" }, failure.Differs, "error: verify s3://models/a: config.json has SHA-256 bad, the manifest says " + strings.Repeat("0", 64) + "\n" + heal},
		"objects are not looked at": {func(b *bucket, p *record.RolloutPlan) { clear(b.sizes); p.Verify = record.VerifyManifest }, 0, ""},
		"a newer schema": {func(b *bucket, _ *record.RolloutPlan) { b.manifest = []byte(`{"schema_version": 9}`) }, failure.Usage,
			"error: verify s3://models/a: read manifest: schema_version 9 is not known, this build reads 1 and 2\nhint: use the kubectl-inference release that wrote it, or a newer one\n"},
		"not a manifest": {func(b *bucket, _ *record.RolloutPlan) { b.manifest = []byte(`<html>`) }, failure.Failed,
			"error: verify s3://models/a: read manifest: not a JSON document: invalid character '<' looking for beginning of value\n"},
		"no permission": {func(b *bucket, _ *record.RolloutPlan) { b.denied = true }, failure.Denied, "error: verify s3://models/a: access denied\nhint: add s3:GetObject\n"},
	} {
		t.Run(name, func(t *testing.T) {
			b := bucketOf(t)
			r := &run{plan: record.RolloutPlan{Model: record.RolloutModel{URI: "s3://models/a"}, Verify: record.VerifyFast}, deps: Deps{Objects: b, Emit: func(record.Event) {}, Now: time.Now}}
			test.change(b, &r.plan)
			_, err := r.verify(t.Context())
			checkFailure(t, err, test.kind, test.want)
		})
	}
}

// TestRun is a whole rollout, and a second one that changes nothing.
func TestRun(t *testing.T) {
	w := newWorld(t, good)
	w.on = func(name, message string) {
		if name == "apply" {
			w.pod("web-1", corev1.PodStatus{})
		}
		if name == record.EventProgress && strings.HasPrefix(message, "0 of 1") {
			now := metav1.Now()
			w.pod("web-1", corev1.PodStatus{Phase: corev1.PodRunning,
				Conditions:        []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now}, {Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}},
				ContainerStatuses: []corev1.ContainerStatus{{Name: "engine", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}}}})
			w.settle(1)
		}
	}
	start, err := Run(t.Context(), w.plan, w.deps)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		"verify: s3://models/a holds owner/name at revision " + strings.Repeat("a", 40) + ": 2 files, 21 bytes, as its manifest says",
		"apply: Deployment web created", "progress: 0 of 1 replicas", "progress: 1 of 1 replicas", "served: web answers at " + w.plan.URL,
	}, w.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if start.ServedModel != "web" || *start.MaxModelLen != 4096 || start.ModelID != "owner/name" || len(start.Replicas) != 1 || start.Replicas[0].FirstTokenSeconds == nil {
		t.Errorf("cold start %+v", start)
	}

	w.events, w.on = nil, func(string, string) {}
	later := w.deps
	later.Now = func() time.Time { return time.Now().Add(time.Hour) }
	start, err = Run(t.Context(), w.plan, later)
	if err != nil || start.Replicas == nil || len(start.Replicas) != 0 {
		t.Errorf("a rollout that changed nothing measured %+v, error %v", start.Replicas, err)
	}
	if got := w.events[1]; got != "apply: Deployment web unchanged" {
		t.Errorf("the second rollout says %q", got)
	}
}

func TestApply(t *testing.T) {
	w := newWorld(t, good)
	apply := func(object string) error {
		w.events, w.changed = nil, false
		w.plan.Objects = []json.RawMessage{json.RawMessage(object)}
		return w.apply(t.Context())
	}
	newer := strings.Replace(deployment, "engine:1", "engine:2", 1)
	for i, step := range []struct {
		object, want string
		changed      bool
	}{
		{deployment, "apply: Deployment web created", true},
		{deployment, "apply: Deployment web unchanged", false},
		{newer, "apply: Deployment web configured", true},
	} {
		if err := apply(step.object); err != nil || w.events[0] != step.want || w.changed != step.changed {
			t.Errorf("step %d: %q, changed %v, error %v", i, w.events, w.changed, err)
		}
	}
	// Somebody else takes the image over.
	patch := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"template":{"spec":{"containers":[{"name":"engine","image":"example.test/engine:3"}]}}}}`
	force := true
	if _, err := w.deps.Client.AppsV1().Deployments(w.plan.Namespace).Patch(t.Context(), "web", types.ApplyPatchType, []byte(patch), metav1.PatchOptions{FieldManager: "argocd", Force: &force}); err != nil {
		t.Fatal(err)
	}
	err := apply(newer)
	if failure.KindOf(err) != failure.Differs || !strings.Contains(err.Error(), `conflict with "argocd"`) || !strings.HasPrefix(err.Error(), "apply Deployment "+w.plan.Namespace+"/web: ") {
		t.Errorf("conflict: %v", err)
	}
	err = apply(`{"apiVersion":"serving.kserve.io/v1beta1","kind":"InferenceService","metadata":{"name":"web"}}`)
	if failure.KindOf(err) != failure.NotFound || !strings.HasPrefix(failure.HintOf(err), "KServe is not installed") {
		t.Errorf("no KServe: %v", err)
	}
	if err = apply(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"bad"},"spec":{}}`); failure.KindOf(err) != failure.Usage {
		t.Errorf("an invalid object: %v", err)
	}
	if err = apply(`[]`); failure.KindOf(err) != failure.Usage {
		t.Errorf("not an object: %v", err)
	}
	guest := shared.Start(t).Config(apiserver.Guest)
	if w.deps.Dynamic, err = dynamic.NewForConfig(guest); err != nil {
		t.Fatal(err)
	}
	if err = apply(newer); failure.KindOf(err) != failure.Denied || !strings.Contains(failure.HintOf(err), "manifests rbac/rollout") {
		t.Errorf("forbidden: %v", err)
	}
}

func TestApplyNotesTheImage(t *testing.T) {
	var object unstructured.Unstructured
	if err := json.Unmarshal([]byte(`{"spec":{"predictor":{"containers":[{"image":"a:1"}]}}}`), &object.Object); err != nil {
		t.Fatal(err)
	}
	if got := engineImage(object); got != "a:1" {
		t.Errorf("image %q", got)
	}
	if got := engineImage(unstructured.Unstructured{Object: map[string]any{}}); got != "" {
		t.Errorf("image %q of nothing", got)
	}
}
