package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/lab/build"
	"github.com/kubectl-inference/kubectl-inference/test/lab/objects"
	"github.com/kubectl-inference/kubectl-inference/test/lab/workload"
)

// upElsewhere puts the workloads into a cluster of others.
func upElsewhere(ctx context.Context, o Options) (*Lab, error) {
	if err := o.Layout.Make(); err != nil {
		return nil, err
	}
	config, err := restConfig(o.Kubeconfig)
	if err != nil {
		return nil, err
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	// Before anything is built: an answer at once when it cannot work.
	if _, err := disco.ServerVersion(); err != nil {
		return nil, failure.New(failure.Unreachable, "see that `kubectl --kubeconfig "+o.Kubeconfig+" version` works", "reach cluster: %w", err)
	}
	if _, err := disco.ServerResourcesForGroupVersion("keda.sh/v1alpha1"); err != nil {
		return nil, failure.New(failure.NotFound, "install KEDA in the cluster first", "find KEDA: %w", err)
	}
	if err := refuseForeign(ctx, o, config); err != nil {
		return nil, err
	}
	images, err := Build(ctx, o)
	if err != nil {
		return nil, err
	}
	for _, image := range images {
		o.Report.Note("image archive %s", o.Layout.Image(image.Name))
	}
	o.Report.Note("the cluster's nodes need them, e.g. `kind load image-archive FILE`")
	// Under the same name as always, with everything embedded.
	raw, err := clientcmd.LoadFromFile(o.Kubeconfig)
	if err == nil {
		err = api.MinifyConfig(raw)
	}
	if err == nil {
		err = api.FlattenConfig(raw)
	}
	if err == nil {
		err = clientcmd.WriteToFile(*raw, o.Layout.Elsewhere())
	}
	if err != nil {
		return nil, fmt.Errorf("copy kubeconfig: %w", err)
	}
	if err := workloads(ctx, o, o.Layout.Elsewhere(), images); err != nil {
		return nil, err
	}
	return &Lab{Kubeconfig: o.Layout.Elsewhere(), Prometheus: o.Prometheus, Started: true}, nil
}

// refuseForeign refuses a cluster in which the lab's namespaces or KServe's
// definitions belong to somebody else.
func refuseForeign(ctx context.Context, o Options, config *rest.Config) error {
	client, list, err := everything(o, config)
	if err != nil {
		return err
	}
	foreign, err := client.Foreign(ctx, list)
	if err != nil {
		return err
	}
	if len(foreign) > 0 {
		return failure.New(failure.Usage, "use a cluster made for it, such as a new one of kind with KEDA and Prometheus and without KServe",
			"use cluster: it has what the lab would take over: %s", strings.Join(foreign, ", "))
	}
	return nil
}

// everything returns all that the lab may put into a cluster.
func everything(o Options, config *rest.Config) (*objects.Client, []*unstructured.Unstructured, error) {
	var images []build.Built
	for _, image := range build.Images() {
		images = append(images, build.Built{Name: image.Name, Tags: image.Tags})
	}
	list, err := workload.Objects(o.Source, images)
	if err != nil {
		return nil, nil, err
	}
	client, err := objects.New(config)
	return client, list, err
}

// downElsewhere removes the workloads from it.
func downElsewhere(ctx context.Context, o Options) (bool, error) {
	config, err := restConfig(o.Kubeconfig)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	if err := refuseForeign(ctx, o, config); err != nil {
		return false, err
	}
	client, list, err := everything(o, config)
	if err != nil {
		return false, err
	}
	// The services that stories left first: their finalizers are taken off by
	// the stand-in, which is part of the rest.
	var definitions, others []*unstructured.Unstructured
	for _, object := range list {
		if object.GetKind() == "CustomResourceDefinition" {
			definitions = append(definitions, object)
		} else {
			others = append(others, object)
		}
	}
	for _, some := range [][]*unstructured.Unstructured{definitions, others} {
		if err := client.Delete(ctx, some); err != nil {
			return true, err
		}
	}
	if err := os.RemoveAll(filepath.Clean(o.Layout.Elsewhere())); err != nil {
		return true, fmt.Errorf("remove kubeconfig: %w", err)
	}
	return true, nil
}
