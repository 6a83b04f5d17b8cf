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
	"slices"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve"
	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve/controller"
)

// shared is the folder of reference data next to the checkout, which is no part
// of the repository.
const shared = "../../../../../shared"

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
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
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
	for _, source := range []func() ([]*unstructured.Unstructured, error){definitions, kserve.Admission, kserve.Manifests} {
		if err := c.env.createAll(ctx, source); err != nil {
			return err
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
	// KEDA comes last: the reconciler must notice.
	if err := c.env.createAll(ctx, kedaCRDs); err != nil {
		return err
	}
	return c.env.admissionActive(ctx)
}

// createAll creates what source returns.
func (e env) createAll(ctx context.Context, source func() ([]*unstructured.Unstructured, error)) error {
	objects, err := source()
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := e.create(ctx, object); err != nil {
			return fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// create creates an object, waiting for its definition to be served.
func (e env) create(ctx context.Context, object *unstructured.Unstructured) error {
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	client := e.client.Resource(resource).Namespace(object.GetNamespace())
	return retry(ctx, func() (bool, error) {
		_, err := client.Create(ctx, object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			err = nil
		}
		// A definition is served a moment after it is created; a large one can
		// take a busy API server longer than it gives a request.
		return apierrors.IsNotFound(err) || apierrors.IsTimeout(err), err
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
		for _, definition := range found {
			if err := onlyStored(definition); err != nil {
				return nil, err
			}
			objects = append(objects, definition)
		}
	}
	return objects, nil
}

// onlyStored removes the versions of a definition that are not the stored one.
// Without KServe's conversion webhook they could not be read, and each costs the
// API server seconds to check.
func onlyStored(definition *unstructured.Unstructured) error {
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil {
		return err
	}
	stored := slices.DeleteFunc(versions, func(version any) bool {
		return at(version, "storage") != true
	})
	return unstructured.SetNestedSlice(definition.Object, stored, "spec", "versions")
}
