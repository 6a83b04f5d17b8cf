package kube

import (
	"crypto/tls"
	"time"

	"github.com/kubectl-inference/kubectl-inference/test/lab/network"
	"github.com/kubectl-inference/kubectl-inference/test/lab/process"
)

const etcdURL = "http://127.0.0.1:2379"

// Etcd keeps the cluster's objects. It does not wait for the disk: the data is
// thrown away with the lab.
func (c *Cluster) Etcd(env []string) process.Spec {
	return process.Spec{
		Name: "etcd", Path: c.Layout.Bin("etcd"), Env: env,
		Args: []string{
			"--name=lab", "--data-dir=" + c.Layout.Run("data", "etcd"),
			"--listen-client-urls=" + etcdURL, "--advertise-client-urls=" + etcdURL,
			"--listen-peer-urls=http://127.0.0.1:2380",
			"--unsafe-no-fsync", "--log-level=warn",
		},
		Ready: process.HTTP(etcdURL+"/health", nil),
	}
}

// APIServer is kube-apiserver, with the aggregation layer (external metrics come
// through it) and with what logs, exec and port-forward need to reach the
// kubelet: by address, since nothing resolves the node's name, and with a
// client certificate.
func (c *Cluster) APIServer(env []string, trust *tls.Config) process.Spec {
	return process.Spec{
		Name: "kube-apiserver", Path: c.Layout.Bin("kube-apiserver"), Env: env,
		Args: []string{
			"--etcd-servers=" + etcdURL,
			"--bind-address=" + network.Address, "--advertise-address=" + network.Address, "--secure-port=6443",
			"--tls-cert-file=" + c.PKI("apiserver.crt"), "--tls-private-key-file=" + c.PKI("apiserver.key"),
			"--client-ca-file=" + c.PKI("ca.crt"),
			"--service-account-key-file=" + c.PKI("sa.pub"), "--service-account-signing-key-file=" + c.PKI("sa.key"),
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-cluster-ip-range=" + network.ServiceCIDR,
			"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
			"--kubelet-preferred-address-types=InternalIP",
			"--kubelet-certificate-authority=" + c.PKI("ca.crt"),
			"--kubelet-client-certificate=" + c.PKI("apiserver-kubelet.crt"), "--kubelet-client-key=" + c.PKI("apiserver-kubelet.key"),
			"--requestheader-client-ca-file=" + c.PKI("front-proxy-ca.crt"),
			"--requestheader-allowed-names=front-proxy-client",
			"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--proxy-client-cert-file=" + c.PKI("front-proxy.crt"), "--proxy-client-key-file=" + c.PKI("front-proxy.key"),
			// Services without a selector have only the endpoints that we wrote.
			"--enable-aggregator-routing=true",
		},
		Ready: process.HTTP(Server+"/readyz", trust),
	}
}

// ControllerManager is kube-controller-manager; hpaSync is how often the HPA
// controller looks at each HPA (Kubernetes' default is 15 s).
func (c *Cluster) ControllerManager(env []string, trust *tls.Config, hpaSync time.Duration) process.Spec {
	name := "kube-controller-manager"
	config := c.Kubeconfig(name)
	return process.Spec{
		Name: name, Path: c.Layout.Bin(name), Env: env,
		Args: []string{
			"--kubeconfig=" + config, "--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
			"--bind-address=127.0.0.1",
			"--tls-cert-file=" + c.PKI("apiserver.crt"), "--tls-private-key-file=" + c.PKI("apiserver.key"),
			"--service-account-private-key-file=" + c.PKI("sa.key"), "--root-ca-file=" + c.PKI("ca.crt"),
			"--use-service-account-credentials", "--allocate-node-cidrs=false",
			// As in every cluster: its Lease says since when the controller
			// remembers. One that a killed process left is taken over after its term.
			"--leader-elect=true", "--leader-elect-lease-duration=12s", "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=1s",
			"--horizontal-pod-autoscaler-sync-period=" + hpaSync.String(),
		},
		Ready: process.HTTP("https://127.0.0.1:10257/healthz", trust),
	}
}

// Scheduler is kube-scheduler.
func (c *Cluster) Scheduler(env []string, trust *tls.Config) process.Spec {
	name := "kube-scheduler"
	config := c.Kubeconfig(name)
	return process.Spec{
		Name: name, Path: c.Layout.Bin(name), Env: env,
		Args: []string{
			"--kubeconfig=" + config, "--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
			"--bind-address=127.0.0.1", "--leader-elect=false",
			"--tls-cert-file=" + c.PKI("apiserver.crt"), "--tls-private-key-file=" + c.PKI("apiserver.key"),
		},
		Ready: process.HTTP("https://127.0.0.1:10259/healthz", trust),
	}
}
