package kube

import (
	"net/http"

	"k8s.io/client-go/rest"
)

// ServiceProxy returns an HTTP client of the API server, for the paths of its
// service proxy, and the server's base URL.
func (f *Factory) ServiceProxy() (*http.Client, string, error) {
	config, err := f.RESTConfig()
	if err != nil {
		return nil, "", err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, "", err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, "", err
	}
	return client, base.String(), nil
}

// Inside says whether this runs in a pod of the very cluster that it talks to:
// then the names of its services can be looked up.
func (f *Factory) Inside() bool {
	config, err := f.RESTConfig()
	if err != nil {
		return false
	}
	inside, err := rest.InClusterConfig()
	return err == nil && inside.Host == config.Host
}
