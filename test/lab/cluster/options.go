// Package cluster brings the lab up and takes it down again. The lab command is
// a thin cover of it; tests call it themselves.
//
// Up builds what is missing, starts a sandbox (package sandbox) in which
// Supervise starts the servers, and then puts the workloads into the cluster
// the way it would into any other.
package cluster

import (
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
)

// Options say what lab to bring up. The zero value of each but Layout, Source
// and Report is its default.
type Options struct {
	// Layout is the lab's directory.
	Layout layout.Layout
	// Source is the root of the repository.
	Source string
	// Report is told how it goes.
	Report *Report
	// HPASync is how often the HPA controller looks; Kubernetes' own default,
	// 15 s, when zero.
	HPASync time.Duration
	// GPUs is how many nvidia.com/gpu the node has; 6 when zero.
	GPUs int
	// Timeout bounds the start, without the builds; 3 minutes when zero.
	Timeout time.Duration
	// Kubeconfig is that of a cluster to use instead of one of our own
	// (LAB_KUBECONFIG). KEDA and Prometheus must be there.
	Kubeconfig string
	// Prometheus is its URL in that cluster (LAB_PROMETHEUS).
	Prometheus string
}

func (o Options) withDefaults() Options {
	if o.HPASync == 0 {
		o.HPASync = 15 * time.Second
	}
	if o.GPUs == 0 {
		o.GPUs = 6
	}
	if o.Timeout == 0 {
		o.Timeout = 3 * time.Minute
	}
	return o
}

// Lab is a lab that is up.
type Lab struct {
	// Kubeconfig is the file to reach it with.
	Kubeconfig string
	// Prometheus is its URL for programs in the cluster, and PrometheusHost the
	// URL for those outside; the latter is empty with a cluster of others.
	Prometheus, PrometheusHost string
	// Started is false when the lab was up already.
	Started bool
}

func restConfig(path string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, failure.New(failure.Usage, "see that the file names a cluster", "read kubeconfig %s: %w", path, err)
	}
	config.QPS = -1
	return config, nil
}

// lockFile opens the file that keeps two commands from changing one lab at the
// same time.
func lockFile(l layout.Layout) (*os.File, error) {
	return os.OpenFile(l.Lock(), os.O_CREATE|os.O_RDWR, 0o644)
}
