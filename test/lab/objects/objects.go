// Package objects applies API objects to a cluster, whatever their kind, and
// waits for them.
package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/kubectl-inference/kubectl-inference/test/lab/process"
)

// owner is the field manager of what the lab applies.
const owner = "kubectl-inference-lab"

// parallel bounds how many objects are applied at once.
const parallel = 8

// Client applies and reads objects.
type Client struct {
	dynamic dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
}

// New returns a client of the cluster of config.
func New(config *rest.Config) (*Client, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // no limit of its own; the server has one
	config.WarningHandler = rest.NoWarnings{}
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	return &Client{dynamic: d, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))}, nil
}

// Decode reads all objects of a YAML or JSON stream.
func Decode(r io.Reader) ([]*unstructured.Unstructured, error) {
	var list []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(r, 4096); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decode objects: %w", err)
		}
		if len(object.Object) > 0 { // nothing but a comment between separators
			list = append(list, object)
		}
	}
}

// ReadFiles decodes the objects of files.
func ReadFiles(paths ...string) ([]*unstructured.Unstructured, error) {
	var list []*unstructured.Unstructured
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read objects: %w", err)
		}
		objects, err := Decode(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("read objects of %s: %w", path, err)
		}
		list = append(list, objects...)
	}
	return list, nil
}

// Apply applies the objects, server-side (some of KEDA's are too large for the
// annotation of a client-side apply): namespaces and custom resources first,
// the others then at the same time. What fails because something else is not
// there yet is tried again until ctx ends.
func (c *Client) Apply(ctx context.Context, list []*unstructured.Unstructured) error {
	for _, phase := range phases(list) {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(parallel)
		for _, object := range phase {
			group.Go(func() error { return c.applyOne(ctx, object) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// OwnLabel marks what belongs to the lab.
const OwnLabel = "lab.test/own"

// Foreign returns the Namespaces and custom resource definitions of list that
// are in the cluster already and are not the lab's. They hold other people's
// objects, so the lab neither changes nor deletes them.
func (c *Client) Foreign(ctx context.Context, list []*unstructured.Unstructured) ([]string, error) {
	var foreign []string
	for _, object := range phases(list)[0] {
		resource, err := c.resource(object)
		if err != nil {
			return nil, err
		}
		live, err := resource.Get(ctx, object.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("get %s %s: %w", object.GetKind(), object.GetName(), err)
		case live.GetLabels()[OwnLabel] == "":
			foreign = append(foreign, object.GetKind()+" "+object.GetName())
		}
	}
	return foreign, nil
}

// phases splits the objects by what must be there before what.
func phases(list []*unstructured.Unstructured) [][]*unstructured.Unstructured {
	var first, rest []*unstructured.Unstructured
	for _, object := range list {
		if kind := object.GetKind(); kind == "Namespace" || kind == "CustomResourceDefinition" {
			first = append(first, object)
		} else {
			rest = append(rest, object)
		}
	}
	return [][]*unstructured.Unstructured{first, rest}
}

func (c *Client) applyOne(ctx context.Context, object *unstructured.Unstructured) error {
	var final error
	err := process.Poll(ctx, func(ctx context.Context) error {
		resource, err := c.resource(object)
		if err == nil {
			_, err = resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: owner, Force: true})
		}
		if err == nil && object.GetKind() == "CustomResourceDefinition" {
			err = established(ctx, resource, object.GetName())
		}
		if err != nil && !passes(err) {
			final = err
			return nil
		}
		return err
	})
	if err = errors.Join(err, final); err != nil {
		return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// passes reports whether an error may go away by itself while a cluster starts.
func passes(err error) bool {
	return meta.IsNoMatchError(err) || discovery.IsGroupDiscoveryFailedError(err) ||
		apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInternalError(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.ReasonForError(err) == metav1.StatusReasonUnknown
}

func (c *Client) resource(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		c.mapper.Reset() // a custom resource may be newer than what is cached
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace := object.GetNamespace()
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		return c.dynamic.Resource(mapping.Resource).Namespace(namespace), nil
	}
	return c.dynamic.Resource(mapping.Resource), nil
}

// established waits until a custom resource is served.
func established(ctx context.Context, resource dynamic.ResourceInterface, name string) error {
	object, err := resource.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return err
	}
	for _, item := range conditions {
		if c, ok := item.(map[string]any); ok && c["type"] == "Established" && c["status"] == "True" {
			return nil
		}
	}
	return errors.New("not established")
}
