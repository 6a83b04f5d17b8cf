package kube

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-inference/kubectl-inference/test/lab/network"
)

// HostPort is one port of a Service that leads to a server of the lab itself.
type HostPort struct {
	Name     string
	Protocol string
	// Port is the Service's, Target the one that the server listens on, at the
	// bridge's address.
	Port, Target int64
}

// HostService returns a Service without a selector and its EndpointSlice, for a
// server that runs beside the pods, not in one. The endpoint is the bridge's
// address: a loopback address is refused. Address may be empty.
func HostService(namespace, name, address string, ports ...HostPort) []*unstructured.Unstructured {
	var servicePorts, slicePorts []any
	for _, p := range ports {
		servicePorts = append(servicePorts, map[string]any{"name": p.Name, "protocol": p.Protocol, "port": p.Port, "targetPort": p.Target})
		slicePorts = append(slicePorts, map[string]any{"name": p.Name, "protocol": p.Protocol, "port": p.Target})
	}
	spec := map[string]any{"ports": servicePorts}
	if address != "" {
		spec["clusterIP"] = address
	}
	return []*unstructured.Unstructured{
		{Object: map[string]any{
			"apiVersion": "v1", "kind": "Service",
			"metadata": map[string]any{"namespace": namespace, "name": name},
			"spec":     spec,
		}},
		{Object: map[string]any{
			"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
			"metadata": map[string]any{"namespace": namespace, "name": name + "-host", "labels": map[string]any{
				"kubernetes.io/service-name": name, "endpointslice.kubernetes.io/managed-by": "lab",
			}},
			"addressType": "IPv4",
			"ports":       slicePorts,
			"endpoints":   []any{map[string]any{"addresses": []any{network.Address}, "conditions": map[string]any{"ready": true}}},
		}},
	}
}
