// Package keda runs KEDA beside the cluster: operator, metrics adapter and
// admission webhooks are programs of the lab, reached by the API server through
// Services without a selector. They act as KEDA's own service account, so it is
// KEDA's shipped RBAC that is in force.
package keda

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	authv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-inference/kubectl-inference/test/lab/kube"
	"github.com/kubectl-inference/kubectl-inference/test/lab/network"
	"github.com/kubectl-inference/kubectl-inference/test/lab/objects"
	"github.com/kubectl-inference/kubectl-inference/test/lab/pki"
	"github.com/kubectl-inference/kubectl-inference/test/lab/process"
)

const (
	namespace = "keda"
	account   = "keda-operator"
	// MetricsAddress is where the operator tells its own metrics.
	MetricsAddress = "127.0.0.1:18080"
)

// Namespace returns the namespace that the others are in.
func Namespace() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace},
	}}}
}

// Objects returns KEDA's API objects, with the certificate authority filled in
// where the API server must know it.
func Objects(c *kube.Cluster) (crds, others []*unstructured.Unstructured, err error) {
	crds, err = objects.ReadFiles(c.Layout.Objects("keda", "crds.yaml"))
	if err != nil {
		return nil, nil, err
	}
	files, err := filepath.Glob(c.Layout.Objects("keda", "*-*.yaml"))
	if err != nil {
		return nil, nil, fmt.Errorf("find KEDA's objects: %w", err)
	}
	others, err = objects.ReadFiles(files...)
	if err != nil {
		return nil, nil, err
	}
	bundle := base64.StdEncoding.EncodeToString(c.CA.Cert)
	for _, object := range others {
		if object.GetKind() != "ValidatingWebhookConfiguration" {
			continue
		}
		if err := trust(object, bundle); err != nil {
			return nil, nil, err
		}
	}
	others = append(others, apiService(bundle))
	for name, port := range map[string]kube.HostPort{
		"keda-metrics-apiserver":  {Name: "https", Protocol: "TCP", Port: 443, Target: 6444},
		"keda-operator":           {Name: "metricsservice", Protocol: "TCP", Port: 9666, Target: 9666},
		"keda-admission-webhooks": {Name: "https", Protocol: "TCP", Port: 443, Target: 9443},
	} {
		others = append(others, kube.HostService(namespace, name, "", port)...)
	}
	return crds, others, nil
}

// trust puts the authority into each webhook and makes them required: KEDA
// ships them ignoring failures, which in a test would hide that one is broken.
func trust(object *unstructured.Unstructured, bundle string) error {
	webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	if err != nil {
		return fmt.Errorf("read KEDA's webhooks: %w", err)
	}
	for _, item := range webhooks {
		webhook, ok := item.(map[string]any)
		if !ok {
			return errors.New("read KEDA's webhooks: not a list of objects")
		}
		if err := unstructured.SetNestedField(webhook, bundle, "clientConfig", "caBundle"); err != nil {
			return fmt.Errorf("fill in KEDA's webhooks: %w", err)
		}
		webhook["failurePolicy"] = "Fail"
	}
	return unstructured.SetNestedSlice(object.Object, webhooks, "webhooks")
}

func apiService(bundle string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1beta1.external.metrics.k8s.io"},
		"spec": map[string]any{
			"service": map[string]any{"namespace": namespace, "name": "keda-metrics-apiserver"},
			"group":   "external.metrics.k8s.io", "version": "v1beta1",
			"groupPriorityMinimum": int64(100), "versionPriority": int64(100), "caBundle": bundle,
		},
	}}
}

// Identity writes the kubeconfig of KEDA's service account.
func Identity(ctx context.Context, client kubernetes.Interface, c *kube.Cluster) error {
	day := int64(24 * 60 * 60)
	seconds := 30 * day
	var token string
	err := process.Poll(ctx, func(ctx context.Context) error {
		answer, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account,
			&authv1.TokenRequest{Spec: authv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
		if err == nil {
			token = answer.Status.Token
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("create token of %s: %w", account, err)
	}
	config, err := pki.TokenKubeconfig(kube.Server, c.CA.Cert, account, token)
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.Kubeconfig("keda"), config, 0o600); err != nil {
		return fmt.Errorf("write kubeconfig of %s: %w", account, err)
	}
	return nil
}

// Operator computes the metrics of ScaledObjects and keeps their HPAs.
func Operator(c *kube.Cluster, env []string) process.Spec {
	return spec(c, "operator", env, process.HTTP("http://127.0.0.1:18081/readyz", nil),
		"--kubeconfig="+c.Kubeconfig("keda"), "--leader-elect=false", "--cert-dir="+c.KEDACerts(),
		"--metrics-bind-address="+MetricsAddress, "--health-probe-bind-address=127.0.0.1:18081",
		"--metrics-service-bind-address="+network.Address+":9666",
		"--zap-encoder=console", "--zap-time-encoding=rfc3339")
}

// Adapter serves them as the external metrics API.
func Adapter(c *kube.Cluster, env []string) process.Spec {
	config := c.Kubeconfig("keda")
	return spec(c, "adapter", env, nil,
		"--kubeconfig="+config, "--lister-kubeconfig="+config, "--authentication-kubeconfig="+config, "--authorization-kubeconfig="+config,
		"--bind-address="+network.Address, "--secure-port=6444", "--port=18082",
		"--client-ca-file="+c.PKI("ca.crt"),
		"--tls-cert-file="+filepath.Join(c.KEDACerts(), "tls.crt"), "--tls-private-key-file="+filepath.Join(c.KEDACerts(), "tls.key"),
		"--cert-dir="+c.KEDACerts(), "--metrics-service-address="+network.Address+":9666")
}

// Webhooks refuse ScaledObjects that cannot work.
func Webhooks(c *kube.Cluster, env []string) process.Spec {
	return spec(c, "webhooks", env, process.HTTP("http://127.0.0.1:18085/readyz", nil),
		"--kubeconfig="+c.Kubeconfig("keda"), "--cert-dir="+c.KEDACerts(), "--port=9443",
		"--metrics-bind-address=127.0.0.1:18084", "--health-probe-bind-address=127.0.0.1:18085")
}

func spec(c *kube.Cluster, part string, env []string, ready func(context.Context) error, args ...string) process.Spec {
	env = append([]string{
		"KUBECONFIG=" + c.Kubeconfig("keda"), "POD_NAMESPACE=" + namespace, "WATCH_NAMESPACE=",
		// What KEDA reads from its pod otherwise.
		"KEDA_CLUSTER_OBJECT_NAMESPACE=" + namespace,
	}, env...)
	return process.Spec{Name: "keda-" + part, Path: c.Layout.Bin("keda-" + part), Args: args, Env: env, Ready: ready}
}

// Serving is nil once the API server has noticed that external metrics are
// served.
func Serving(client kubernetes.Interface) func(context.Context) error {
	return func(ctx context.Context) error {
		return client.Discovery().RESTClient().Get().AbsPath("/apis/external.metrics.k8s.io/v1beta1").Do(ctx).Error()
	}
}
