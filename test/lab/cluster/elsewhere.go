package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/discovery"
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
		err = clientcmd.WriteToFile(*raw, o.Layout.Kubeconfig())
	}
	if err != nil {
		return nil, fmt.Errorf("copy kubeconfig: %w", err)
	}
	if err := workloads(ctx, o, o.Layout.Kubeconfig(), images); err != nil {
		return nil, err
	}
	return &Lab{Kubeconfig: o.Layout.Kubeconfig(), Prometheus: o.Prometheus, Started: true}, nil
}

// downElsewhere removes the workloads from it.
func downElsewhere(ctx context.Context, o Options) (bool, error) {
	config, err := restConfig(o.Kubeconfig)
	if err != nil {
		return false, err
	}
	images, err := build.Archives(o.Layout)
	if err != nil {
		return false, err
	}
	list, err := workload.Objects(o.Source, images)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	client, err := objects.New(config)
	if err != nil {
		return false, err
	}
	if err := client.Delete(ctx, list); err != nil {
		return true, err
	}
	if err := os.RemoveAll(filepath.Clean(o.Layout.Kubeconfig())); err != nil {
		return true, fmt.Errorf("remove kubeconfig: %w", err)
	}
	return true, nil
}
