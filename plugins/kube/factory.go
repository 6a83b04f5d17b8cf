// Package kube is the edge to the Kubernetes API: clients, made when first
// used, the rules of namespaces, and API errors put into words with a hint.
package kube

import (
	"fmt"
	"sync"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// FieldManager is the name under which every write is made.
const FieldManager = "kubectl-inference"

// Limits for lists over many objects; client-go's own 5 a second suits
// controllers, not people who wait.
const (
	requestsPerSecond = 50
	requestsBurst     = 300
)

// Factory makes clients from the kubeconfig flags. Nothing is read and nobody
// is called before a client is asked for, so help, version and completion work
// without a cluster.
type Factory struct {
	flags  *genericclioptions.ConfigFlags
	config func() (*rest.Config, error)
	clock  *Clock
}

// NewFactory makes a Factory whose clients send version as part of their user
// agent and hand the API server's warnings to warn.
func NewFactory(version string, warn rest.WarningHandler) *Factory {
	flags := genericclioptions.NewConfigFlags(true).
		WithDiscoveryBurst(requestsBurst).
		WithDiscoveryQPS(requestsPerSecond)
	clock := &Clock{}
	flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
		config.QPS = requestsPerSecond
		config.Burst = requestsBurst
		config.UserAgent = "kubectl-inference/" + version
		config.WarningHandler = warn
		config.Wrap(clock.watch)
		return config
	}
	factory := &Factory{flags: flags, clock: clock}
	factory.config = sync.OnceValues(func() (*rest.Config, error) {
		config, err := flags.ToRESTConfig()
		if err != nil {
			return nil, failure.New(failure.Usage,
				"set --kubeconfig, --context or KUBECONFIG; `kubectl config get-contexts` lists what there is",
				"read kubeconfig: %w", err)
		}
		return config, nil
	})
	return factory
}

// AddFlags adds the kubeconfig flags (--context, -n, --request-timeout ...).
func (f *Factory) AddFlags(flags *pflag.FlagSet) { f.flags.AddFlags(flags) }

// Namespace returns the namespace that the user means: -n, else that of the
// kubeconfig's context, else "default".
func (f *Factory) Namespace() (string, error) {
	namespace, _, err := f.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", failure.New(failure.Usage, "check --kubeconfig, --context and KUBECONFIG", "read kubeconfig: %w", err)
	}
	return namespace, nil
}

// ChosenNamespace is what -n says, "" without it: saved objects have their own
// namespaces, and no kubeconfig decides about them.
func (f *Factory) ChosenNamespace() string {
	if f.flags.Namespace == nil {
		return ""
	}
	return *f.flags.Namespace
}

// Getter returns the cli-runtime view of the same flags, for resource.Builder.
func (f *Factory) Getter() genericclioptions.RESTClientGetter { return f.flags }

// RESTConfig returns a copy of the client configuration.
func (f *Factory) RESTConfig() (*rest.Config, error) {
	config, err := f.config()
	if err != nil {
		return nil, err
	}
	return rest.CopyConfig(config), nil
}

// Clock compares the clock of this machine with the API server's.
func (f *Factory) Clock() *Clock { return f.clock }

// Clientset returns a client for the built-in kinds.
func (f *Factory) Clientset() (kubernetes.Interface, error) {
	config, err := f.RESTConfig()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// Dynamic returns a client for any kind.
func (f *Factory) Dynamic() (dynamic.Interface, error) {
	config, err := f.RESTConfig()
	if err != nil {
		return nil, err
	}
	return dynamic.NewForConfig(config)
}

// Mapper returns the cluster's mapping of kinds to resources, short names
// included, from the discovery cache that kubectl shares.
func (f *Factory) Mapper() (meta.RESTMapper, error) { return f.flags.ToRESTMapper() }

// Discovery returns the cached discovery client.
func (f *Factory) Discovery() (discovery.CachedDiscoveryInterface, error) {
	return f.flags.ToDiscoveryClient()
}

// ServerVersion returns the API server's version, such as "v1.37.2".
func (f *Factory) ServerVersion() (string, error) {
	client, err := f.Discovery()
	if err != nil {
		return "", err
	}
	info, err := client.ServerVersion()
	if err != nil {
		return "", Explain(err, "read the server's version")
	}
	return fmt.Sprintf("v%s.%s", info.Major, info.Minor), nil
}
