// Package network makes the lab's own network, inside its network namespace:
// loopback, and one bridge that the pods are plugged into. There is no way out:
// no default route, no masquerading.
package network

// The addresses are the same in every lab, since each has a network namespace
// of its own.
const (
	// Bridge is the name of the bridge.
	Bridge = "cni0"
	// Address is the bridge's address, and with it the node's: the kubelet
	// refuses a loopback address.
	Address = "10.244.0.1"
	// PodCIDR holds the bridge and the pods.
	PodCIDR = "10.244.0.0/24"
	// FirstPod is the first address that pods get.
	FirstPod = "10.244.0.10"
	// ServiceCIDR holds the virtual addresses of Services.
	ServiceCIDR = "10.96.0.0/16"
	// APIService is the address of Service default/kubernetes.
	APIService = "10.96.0.1"
	// DNSService is the address of Service kube-system/kube-dns.
	DNSService = "10.96.0.10"
)
