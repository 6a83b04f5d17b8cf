// Package apiserver starts a real Kubernetes API server, with its etcd, for
// tests: etcd and kube-apiserver on loopback ports that were free, a
// certificate authority made on the spot, token authentication and RBAC, all in
// one temporary directory. It needs neither root nor a container.
//
// There is no controller manager and no node behind it: nothing garbage
// collects, nothing scales and no pod ever runs. Tests which need that belong
// in test/lab.
//
// Both servers come from one binary, built from test/lab/servers/kubernetes,
// whose path is in the environment variable LAB_KUBERNETES. Where that is
// unset, tests skip; `make test` builds the binary and sets it.
//
// A package whose tests share one server writes
//
//	var cluster apiserver.Shared
//
//	func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }
//
//	func TestSomething(t *testing.T) {
//		server := cluster.Start(t)
//		...
//	}
//
// and a test that needs a server to itself calls [Start].
//
// The servers are killed with the test process on Linux, whatever ends it, a
// panic and a test timeout included; what such an end leaves in the temporary
// directory is removed by the next start.
package apiserver
