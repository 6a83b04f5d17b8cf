package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-inference/kubectl-inference/test/lab/keda"
	"github.com/kubectl-inference/kubectl-inference/test/lab/kube"
	"github.com/kubectl-inference/kubectl-inference/test/lab/network"
	"github.com/kubectl-inference/kubectl-inference/test/lab/objects"
	"github.com/kubectl-inference/kubectl-inference/test/lab/pki"
	"github.com/kubectl-inference/kubectl-inference/test/lab/process"
	"github.com/kubectl-inference/kubectl-inference/test/lab/prometheus"
	"github.com/kubectl-inference/kubectl-inference/test/lab/sandbox"
)

// start starts everything: the API server first, since all others need it, and
// containerd beside it; then the others at the same time.
func (s *supervisor) start(ctx context.Context, now func() time.Time) error {
	timeout, err := time.ParseDuration(s.settings.Timeout)
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = s.report.Step(ctx, "network and certificates", func(context.Context) error {
		if err := network.Setup(); err != nil {
			return err
		}
		var err error
		s.cluster, err = kube.Prepare(s.layout, now())
		return err
	})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	containerd := make(chan struct{})
	group.Go(func() error { return s.startContainerd(ctx, containerd) })
	group.Go(func() error {
		trust, err := s.startServer(ctx)
		if err != nil {
			return err
		}
		for _, part := range []func(context.Context, *tls.Config) error{s.startControllers, s.startNetworking, s.startKEDA, s.startPrometheus} {
			group.Go(func() error { return part(ctx, trust) })
		}
		group.Go(func() error { return s.startKubelet(ctx, containerd) })
		return nil
	})
	return group.Wait()
}

// startContainerd starts containerd, closes ready, and loads the images.
func (s *supervisor) startContainerd(ctx context.Context, ready chan<- struct{}) error {
	spec, err := s.cluster.Containerd(s.env, s.tools)
	if err != nil {
		return err
	}
	if err := s.run(ctx, spec); err != nil {
		return err
	}
	close(ready)
	return s.report.Step(ctx, "images", func(ctx context.Context) error {
		return loadImages(ctx, s.cluster, s.env, s.tools)
	})
}

// startServer starts etcd and the API server, and opens the way to it from
// outside.
func (s *supervisor) startServer(ctx context.Context) (*tls.Config, error) {
	trust, err := s.cluster.TLS()
	if err != nil {
		return nil, err
	}
	if err := s.run(ctx, s.cluster.Etcd(s.env)); err != nil {
		return nil, err
	}
	if err := s.run(ctx, s.cluster.APIServer(s.env, trust)); err != nil {
		return nil, err
	}
	if s.config, err = restConfig(s.cluster.Kubeconfig("admin")); err != nil {
		return nil, err
	}
	if s.client, err = kubernetes.NewForConfig(s.config); err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	if err := s.open(serverSocket, network.Address+":6443"); err != nil {
		return nil, err
	}
	outside, err := pki.Kubeconfig(s.settings.Server, s.cluster.CA.Cert, "kubernetes-admin", s.cluster.Admin)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(s.layout.Kubeconfig(), outside, 0o600); err != nil {
		return nil, fmt.Errorf("write kubeconfig: %w", err)
	}
	return trust, nil
}

// open forwards connections to a socket of the outside.
func (s *supervisor) open(descriptor uintptr, target string) error {
	return forward(s.life, os.NewFile(descriptor, "socket"), target, func(err error) { s.log.Print(err) })
}

func (s *supervisor) startControllers(ctx context.Context, trust *tls.Config) error {
	sync, err := time.ParseDuration(s.settings.HPASync)
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.run(ctx, s.cluster.ControllerManager(s.env, trust, sync)) })
	group.Go(func() error { return s.run(ctx, s.cluster.Scheduler(s.env, trust)) })
	return group.Wait()
}

// startNetworking starts kube-proxy and DNS.
func (s *supervisor) startNetworking(ctx context.Context, trust *tls.Config) error {
	proxy, err := s.cluster.Proxy(s.env, trust)
	if err != nil {
		return err
	}
	dns, err := s.cluster.DNS(s.env)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.run(ctx, proxy) })
	group.Go(func() error { return s.run(ctx, dns) })
	group.Go(func() error {
		client, err := objects.New(s.config)
		if err != nil {
			return err
		}
		return client.Apply(ctx, kube.HostService(metav1.NamespaceSystem, "kube-dns", network.DNSService,
			kube.HostPort{Name: "dns", Protocol: "UDP", Port: 53, Target: 1053},
			kube.HostPort{Name: "dns-tcp", Protocol: "TCP", Port: 53, Target: 1053}))
	})
	return group.Wait()
}

// startKubelet starts the node and gives it its GPUs.
func (s *supervisor) startKubelet(ctx context.Context, containerd <-chan struct{}) error {
	select {
	case <-containerd:
	case <-ctx.Done():
		return ctx.Err()
	}
	spec, err := s.cluster.Kubelet(s.env)
	if err != nil {
		return err
	}
	spec.Ready = func(ctx context.Context) error {
		node, err := s.client.CoreV1().Nodes().Get(ctx, sandbox.NodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return nodeReady(node)
	}
	if err := s.run(ctx, spec); err != nil {
		return err
	}
	// The kubelet keeps extended resources that it does not know, over its own
	// updates and restarts.
	patch := fmt.Sprintf(`{"status":{"capacity":{"nvidia.com/gpu":"%[1]d"},"allocatable":{"nvidia.com/gpu":"%[1]d"}}}`, s.settings.GPUs)
	_, err = s.client.CoreV1().Nodes().Patch(ctx, sandbox.NodeName, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("give the node its GPUs: %w", err)
	}
	return nil
}

func nodeReady(node *corev1.Node) error {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			if condition.Status == corev1.ConditionTrue {
				return nil
			}
			return fmt.Errorf("node is not ready: %s", condition.Message)
		}
	}
	return errors.New("node does not say whether it is ready")
}

// startKEDA applies KEDA's objects and starts its programs. The APIService is
// there before the adapter, so the adapter is looked for often only at first;
// how long it takes to be noticed varies.
func (s *supervisor) startKEDA(ctx context.Context, _ *tls.Config) error {
	err := s.report.Step(ctx, "keda objects", func(ctx context.Context) error {
		client, err := objects.New(s.config)
		if err != nil {
			return err
		}
		crds, others, err := keda.Objects(s.cluster)
		if err != nil {
			return err
		}
		if err := client.Apply(ctx, append(keda.Namespace(), crds...)); err != nil {
			return err
		}
		if err := client.Apply(ctx, others); err != nil {
			return err
		}
		return keda.Identity(ctx, s.client, s.cluster)
	})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, spec := range []process.Spec{keda.Operator(s.cluster, s.env), keda.Adapter(s.cluster, s.env), keda.Webhooks(s.cluster, s.env)} {
		group.Go(func() error { return s.run(ctx, spec) })
	}
	group.Go(func() error {
		return s.report.Step(ctx, "external metrics API", func(ctx context.Context) error {
			if err := process.Poll(ctx, keda.Serving(s.client)); err != nil {
				return fmt.Errorf("wait for the external metrics API: %w", err)
			}
			return nil
		})
	})
	return group.Wait()
}

// startPrometheus starts Prometheus and the loop that tells it what to scrape.
func (s *supervisor) startPrometheus(ctx context.Context, _ *tls.Config) error {
	spec, err := prometheus.Server(s.cluster, s.env, s.tools)
	if err != nil {
		return err
	}
	if err := s.run(ctx, spec); err != nil {
		return err
	}
	if err := s.open(prometheusSocket, prometheus.Host); err != nil {
		return err
	}
	go prometheus.Discover(s.life, s.client, s.cluster, func(err error) { s.log.Print(err) })
	list, err := prometheus.Objects()
	if err != nil {
		return err
	}
	client, err := objects.New(s.config)
	if err != nil {
		return err
	}
	return s.report.Step(ctx, "first pod", func(ctx context.Context) error {
		if err := client.Apply(ctx, list); err != nil {
			return err
		}
		return client.WaitRolledOut(ctx, list)
	})
}

// components returns the state of all servers, in order of their names.
func (s *supervisor) components() []Component {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []Component{}
	for name, p := range s.processes {
		pid, starts := p.PID()
		list = append(list, Component{Name: name, PID: pid, Restarts: starts - 1})
	}
	slices.SortFunc(list, func(a, b Component) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// readComponents reads what keepStatus wrote.
func readComponents(path string) ([]Component, error) {
	var list []Component
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("read status: %w", err)
	}
	return list, nil
}
