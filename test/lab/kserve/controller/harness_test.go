package controller_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve"
	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve/controller"
)

var (
	inferenceServices = schema.GroupVersionResource{Group: "serving.kserve.io", Version: "v1beta1", Resource: "inferenceservices"}
	llmServices       = schema.GroupVersionResource{Group: "serving.kserve.io", Version: "v1alpha2", Resource: "llminferenceservices"}
	llmConfigs        = schema.GroupVersionResource{Group: "serving.kserve.io", Version: "v1alpha2", Resource: "llminferenceserviceconfigs"}
	deployments       = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	services          = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	ingresses         = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}
	autoscalers       = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
	scaledObjects     = schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"}
)

// shared is the folder of reference data next to the checkout, which is no part
// of the repository.
const shared = "../../../../../shared"

// patience bounds every wait; a wait that succeeds takes a fraction of it.
const patience = 30 * time.Second

// env is an API server with the reconciler at work on it. A scenario gets a copy
// with its own namespace.
type env struct {
	client    dynamic.Interface
	namespace string
}

// cluster is an API server with the reconciler at work, started by the first
// test that needs it.
type cluster struct {
	once sync.Once
	env  env
	err  error
	// end undoes what was started, in order.
	end []func()
}

// lab has the lab's definitions of KServe's resources, upstream KServe's own.
var lab, upstream cluster

func TestMain(m *testing.M) {
	code := m.Run()
	for _, end := range append(lab.end, upstream.end...) {
		end()
	}
	os.Exit(code)
}

// eachCluster runs a test on an API server with the lab's definitions, and, as
// far as they are there, on one with KServe's.
func eachCluster(t *testing.T, test func(t *testing.T, on env)) {
	t.Run("lab definitions", func(t *testing.T) {
		test(t, lab.started(t, kserve.CRDs))
	})
	t.Run("KServe definitions", func(t *testing.T) {
		if _, err := os.Stat(filepath.Join(shared, "crds", "kserve")); err != nil {
			t.Skip("needs KServe's definitions next to the checkout:", err)
		}
		test(t, upstream.started(t, upstreamCRDs))
	})
}

// started returns the cluster's environment, after a start if need be.
func (c *cluster) started(t *testing.T, definitions func() ([]*unstructured.Unstructured, error)) env {
	t.Helper()
	binary := os.Getenv(apiserver.BinaryEnv)
	if binary == "" {
		t.Skip("needs the API server: run make test")
	}
	c.once.Do(func() { c.err = c.start(binary, definitions) })
	if c.err != nil {
		t.Fatal(c.err)
	}
	return c.env
}

// start starts an API server, applies everything in the order that the package
// kserve names, and starts the reconciler under its own account.
func (c *cluster) start(binary string, definitions func() ([]*unstructured.Unstructured, error)) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	server, err := apiserver.New(ctx, binary)
	if err != nil {
		return err
	}
	c.end = []func(){server.Stop}
	config := server.Config(apiserver.Admin)
	config.WarningHandler = rest.NoWarnings{}
	if c.env.client, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	for _, source := range []func() ([]*unstructured.Unstructured, error){kedaCRDs, definitions, kserve.Admission, kserve.Manifests} {
		objects, err := source()
		if err != nil {
			return err
		}
		for _, object := range objects {
			if err := c.env.create(ctx, object); err != nil {
				return fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), err)
			}
		}
	}
	account := rest.CopyConfig(config)
	account.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:kserve:kserve-standin",
		Groups:   []string{"system:serviceaccounts", "system:authenticated"},
	}
	reconciler, err := controller.New(account, controller.Options{
		Namespace: "kserve", Log: slog.New(slog.DiscardHandler), Now: time.Now,
	})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- reconciler.Run(running) }()
	c.end = []func(){stop, func() { <-done }, server.Stop}
	return c.env.admissionActive(ctx)
}

// create creates an object, waiting for its definition to be served.
func (e env) create(ctx context.Context, object *unstructured.Unstructured) error {
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	client := e.client.Resource(resource).Namespace(object.GetNamespace())
	return retry(ctx, func() (bool, error) {
		_, err := client.Create(ctx, object, metav1.CreateOptions{})
		// A definition is served a moment after it is created.
		return apierrors.IsNotFound(err), err
	})
}

// admissionActive waits until the validating policies are enforced, which the
// API server does some time after they are created.
func (e env) admissionActive(ctx context.Context) error {
	e.namespace = "default"
	for resource, refused := range map[schema.GroupVersionResource]*unstructured.Unstructured{
		inferenceServices: isvc("probe", map[string]any{"serving.kserve.io/autoscalerClass": "nobody"}, nil),
		llmServices: llm("probe", map[string]any{
			"scaling": kedaScaling("1"), "prefill": map[string]any{"scaling": wvaScaling()},
		}),
	} {
		err := retry(ctx, func() (bool, error) {
			_, err := e.of(resource).Create(ctx, refused, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err == nil {
				err = errors.New("policy is not enforced")
			}
			return !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err), err
		})
		if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			return err
		}
	}
	return nil
}

// retry calls act until it does not want to be called again, or the context
// ends.
func retry(ctx context.Context, act func() (again bool, err error)) error {
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for {
		again, err := act()
		if !again {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-poll.C:
		}
	}
}

// kedaCRDs reads KEDA's definition of ScaledObjects from its module.
func kedaCRDs() ([]*unstructured.Unstructured, error) {
	command := exec.Command("go", "mod", "download", "-json", "github.com/kedacore/keda/v2")
	command.Dir = filepath.Join("..", "..", "servers", "keda")
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("find KEDA's module: %w", err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(output, &module); err != nil {
		return nil, fmt.Errorf("find KEDA's module: %w", err)
	}
	content, err := os.ReadFile(filepath.Join(module.Dir, "config", "crd", "bases", "keda.sh_scaledobjects.yaml"))
	if err != nil {
		return nil, err
	}
	return kserve.Decode(content)
}

// upstreamCRDs reads KServe's own definitions.
func upstreamCRDs() ([]*unstructured.Unstructured, error) {
	names, err := filepath.Glob(filepath.Join(shared, "crds", "kserve", "*.yaml.gz"))
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		unzipped, err := gzip.NewReader(file)
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(unzipped)
		if err != nil {
			return nil, err
		}
		found, err := kserve.Decode(content)
		if err != nil {
			return nil, err
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// in returns the environment with a fresh namespace.
func (e env) in(t *testing.T) env {
	t.Helper()
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"generateName": "llm-"},
	}}
	made, err := e.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).
		Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e.namespace = made.GetName()
	return e
}

func (e env) of(resource schema.GroupVersionResource) dynamic.ResourceInterface {
	return e.client.Resource(resource).Namespace(e.namespace)
}

// make creates an object in the scenario's namespace.
func (e env) make(t *testing.T, resource schema.GroupVersionResource, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	made, err := e.of(resource).Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// get reads an object, nil when there is none.
func (e env) get(t *testing.T, resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	t.Helper()
	found, err := e.of(resource).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// patch merges a JSON document into an object, by its field manager `tuner`.
func (e env) patch(t *testing.T, resource schema.GroupVersionResource, name, document string, subresources ...string) *unstructured.Unstructured {
	t.Helper()
	return e.patchAs(t, types.MergePatchType, resource, name, document, subresources...)
}

// patchJSON applies a JSON patch.
func (e env) patchJSON(t *testing.T, resource schema.GroupVersionResource, name, document string) *unstructured.Unstructured {
	t.Helper()
	return e.patchAs(t, types.JSONPatchType, resource, name, document)
}

func (e env) patchAs(t *testing.T, kind types.PatchType, resource schema.GroupVersionResource, name, document string, subresources ...string) *unstructured.Unstructured {
	t.Helper()
	patched, err := e.of(resource).Patch(t.Context(), name, kind, []byte(document),
		metav1.PatchOptions{FieldManager: "tuner"}, subresources...)
	if err != nil {
		t.Fatal(err)
	}
	return patched
}

// await watches an object until want returns "", which else says what is still
// missing; object is nil while there is none.
func (e env) await(t *testing.T, resource schema.GroupVersionResource, name string, want func(object *unstructured.Unstructured) string) *unstructured.Unstructured {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	missing := "it was never seen"
	for ctx.Err() == nil {
		only := metav1.ListOptions{FieldSelector: "metadata.name=" + name}
		list, err := e.of(resource).List(ctx, only)
		if err != nil {
			missing = err.Error()
			continue
		}
		var object *unstructured.Unstructured
		if len(list.Items) > 0 {
			object = &list.Items[0]
		}
		if missing = want(object); missing == "" {
			return object
		}
		// From where the list ends: nothing that happens in between is lost.
		only.ResourceVersion = list.GetResourceVersion()
		watch, err := e.of(resource).Watch(ctx, only)
		if err != nil {
			missing = err.Error()
			continue
		}
		for event := range watch.ResultChan() {
			object, isObject := event.Object.(*unstructured.Unstructured)
			if !isObject {
				break
			}
			if event.Type == "DELETED" {
				object = nil
			}
			if missing = want(object); missing == "" {
				watch.Stop()
				return object
			}
		}
		watch.Stop()
	}
	t.Fatalf("%s %s: %s", resource.Resource, name, missing)
	return nil
}

// exists is the want of [env.await] that any object fulfils.
func exists(object *unstructured.Unstructured) string {
	if object == nil {
		return "does not exist"
	}
	return ""
}

// gone is the want of [env.await] that no object fulfils.
func gone(object *unstructured.Unstructured) string {
	if object != nil {
		return "still exists"
	}
	return ""
}

// field is the want of [env.await] that the field at a dotted path, numbers
// being indexes, prints as value.
func field(path, value string) func(*unstructured.Unstructured) string {
	return func(object *unstructured.Unstructured) string {
		if object == nil {
			return "does not exist"
		}
		if got := at(object.Object, path); fmt.Sprint(got) != value {
			return fmt.Sprintf("%s is %v, want %s", path, got, value)
		}
		return ""
	}
}

// at returns the value at a dotted path, nil where there is none.
func at(value any, path string) any {
	for key := range strings.SplitSeq(path, ".") {
		switch part := value.(type) {
		case map[string]any:
			value = part[key]
		case []any:
			var index int
			if _, err := fmt.Sscan(key, &index); err != nil || index >= len(part) {
				return nil
			}
			value = part[index]
		default:
			return nil
		}
	}
	return value
}

// condition is the want of [env.await] that a condition has a status and a
// reason.
func condition(kind, status, reason string) func(*unstructured.Unstructured) string {
	return func(object *unstructured.Unstructured) string {
		if object == nil {
			return "does not exist"
		}
		got := conditionOf(object, kind)
		if got["status"] != status || fmt.Sprint(got["reason"]) != reasonText(reason) {
			return fmt.Sprintf("condition %s is %v, want %s %s", kind, got, status, reason)
		}
		return ""
	}
}

func reasonText(reason string) string {
	if reason == "" {
		return fmt.Sprint(nil)
	}
	return reason
}

func conditionOf(object *unstructured.Unstructured, kind string) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, one := range conditions {
		if found := one.(map[string]any); found["type"] == kind {
			return found
		}
	}
	return nil
}

// roll plays the Deployment controller: it sets a status as it writes it.
func (e env) roll(t *testing.T, name string, generation, replicas, updated, available int) {
	t.Helper()
	status, progressing := "True", "NewReplicaSetAvailable"
	if available == 0 {
		status = "False"
	}
	if updated != replicas || available != replicas {
		progressing = "ReplicaSetUpdated"
	}
	e.patch(t, deployments, name, fmt.Sprintf(`{"status":{"observedGeneration":%d,"replicas":%d,"updatedReplicas":%d,
		"readyReplicas":%d,"availableReplicas":%d,"conditions":[
		{"type":"Available","status":%q,"reason":"MinimumReplicas","message":"availability"},
		{"type":"Progressing","status":"True","reason":%q,"message":"progress"}]}}`,
		generation, replicas, updated, available, available, status, progressing), "status")
}
