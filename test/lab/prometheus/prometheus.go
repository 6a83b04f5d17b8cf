package prometheus

import (
	"bytes"
	"context"
	_ "embed" // for the manifest
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-inference/kubectl-inference/test/lab/debian"
	"github.com/kubectl-inference/kubectl-inference/test/lab/keda"
	"github.com/kubectl-inference/kubectl-inference/test/lab/kube"
	"github.com/kubectl-inference/kubectl-inference/test/lab/network"
	"github.com/kubectl-inference/kubectl-inference/test/lab/objects"
	"github.com/kubectl-inference/kubectl-inference/test/lab/process"
)

// Host is where Prometheus is reached; Services lead there by name.
const Host = network.Address + ":9090"

// Interval is how often pods are looked for. The scrape interval is short so
// that short windows hold several scrapes; a cluster's is more often 15 or 30 s.
const (
	Interval       = 2 * time.Second
	scrapeInterval = 2 * time.Second
)

//go:embed prometheus.yaml
var manifest []byte

// Objects returns Prometheus' namespace, Services and stand-in pod.
func Objects() ([]*unstructured.Unstructured, error) {
	return objects.Decode(bytes.NewReader(manifest))
}

// Server is Prometheus.
func Server(c *kube.Cluster, env []string, tools debian.Tools) (process.Spec, error) {
	path, err := tools.Lookup("prometheus")
	if err != nil {
		return process.Spec{}, err
	}
	config := fmt.Sprintf(`global: {scrape_interval: %[1]s, scrape_timeout: 2s, evaluation_interval: %[1]s}
scrape_configs:
- job_name: pods
  file_sd_configs: [{files: [%[2]q], refresh_interval: 5s}]
- job_name: keda-operator
  static_configs: [{targets: [%[3]q], labels: {namespace: keda}}]
`, scrapeInterval, targetsFile(c), keda.MetricsAddress)
	for name, data := range map[string]string{c.Config("prometheus.yaml"): config, targetsFile(c): "[]\n"} {
		if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
			return process.Spec{}, fmt.Errorf("configure prometheus: %w", err)
		}
	}
	return process.Spec{
		Name: "prometheus", Path: path, Env: env,
		Args: []string{
			"--config.file=" + c.Config("prometheus.yaml"), "--storage.tsdb.path=" + c.Layout.Run("data", "prometheus"),
			// On loopback too: a port-forward to its pod ends there.
			"--web.listen-address=:9090", "--log.level=warn",
		},
		Ready: process.HTTP("http://"+Host+"/-/ready", nil),
	}, nil
}

// targetsFile must end in .json: that is how file_sd knows its format.
func targetsFile(c *kube.Cluster) string { return c.Config("targets.json") }

// Discover keeps the file of scrape targets up to date until ctx ends. What
// goes wrong is told to problem, and tried again.
func Discover(ctx context.Context, client kubernetes.Interface, c *kube.Cluster, problem func(error)) {
	var written []byte
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	for {
		data, err := discover(ctx, client)
		if err == nil && !bytes.Equal(data, written) {
			if err = replace(targetsFile(c), data); err == nil {
				written = data
			}
		}
		if err != nil && ctx.Err() == nil {
			problem(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func discover(ctx context.Context, client kubernetes.Interface) ([]byte, error) {
	// Version 0 is answered from the API server's cache.
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{ResourceVersion: "0", FieldSelector: "status.phase=Running"})
	if err != nil {
		return nil, fmt.Errorf("list pods to scrape: %w", err)
	}
	return Render(Targets(pods.Items))
}

// replace writes a file at once: Prometheus never sees half of it.
func replace(path string, data []byte) error {
	next := path + ".next"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return fmt.Errorf("write scrape targets: %w", err)
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("write scrape targets: %w", err)
	}
	return nil
}
