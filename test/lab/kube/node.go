package kube

import (
	"context"
	"crypto/tls"
	"fmt"
	"os/exec"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/test/lab/build"
	"github.com/kubectl-inference/kubectl-inference/test/lab/debian"
	"github.com/kubectl-inference/kubectl-inference/test/lab/network"
	"github.com/kubectl-inference/kubectl-inference/test/lab/process"
	"github.com/kubectl-inference/kubectl-inference/test/lab/sandbox"
)

// containerdSocket lies in the lab's own /run.
const containerdSocket = "/run/containerd/containerd.sock"

// Containerd runs the pods' containers.
func (c *Cluster) Containerd(env []string, tools debian.Tools) (process.Spec, error) {
	path, err := tools.Lookup("containerd")
	if err != nil {
		return process.Spec{}, err
	}
	config := fmt.Sprintf(`version = 2
root = %q
state = "/run/containerd"
[grpc]
  address = %q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  # Lowering oom_score_adj needs CAP_SYS_RESOURCE, which containers may lack.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q
`, c.Layout.Run("containerd"), containerdSocket, build.PauseTag, tools.CNI, c.Config("cni"))
	if err := write(c.Config("containerd.toml"), []byte(config)); err != nil {
		return process.Spec{}, fmt.Errorf("configure containerd: %w", err)
	}
	if err := write(c.Config("cni/10-lab.conflist"), []byte(c.cni())); err != nil {
		return process.Spec{}, fmt.Errorf("configure pod network: %w", err)
	}
	return process.Spec{
		Name: "containerd", Path: path, Env: env,
		Args: []string{"--config", c.Config("containerd.toml"), "--log-level", "warn"},
		Ready: func(ctx context.Context) error {
			_, err := ctr(ctx, env, tools, "version")
			return err
		},
	}, nil
}

// cni is the pods' network: the bridge, an address each, and a route to the
// Services alone. No default route and no masquerading: no way out.
func (c *Cluster) cni() string {
	return fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "lab", "plugins": [
  {"type": "bridge", "bridge": %q, "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": %q, "routes": [{"dst": %q}],
            "ranges": [[{"subnet": %q, "rangeStart": %q, "gateway": %q}]]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}
]}
`, network.Bridge, c.Layout.Run("data", "ipam"), network.ServiceCIDR, network.PodCIDR, network.FirstPod, network.Address)
}

// ImportImage loads one image archive into containerd.
func (c *Cluster) ImportImage(ctx context.Context, env []string, tools debian.Tools, name string) error {
	if _, err := ctr(ctx, env, tools, "--namespace", "k8s.io", "images", "import", c.Layout.Image(name)); err != nil {
		return fmt.Errorf("load image %s: %w", name, err)
	}
	return nil
}

func ctr(ctx context.Context, env []string, tools debian.Tools, args ...string) (string, error) {
	path, err := tools.Lookup("ctr")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, path, append([]string{"--address", containerdSocket}, args...)...)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("run ctr %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// Kubelet runs the pods of the only node.
func (c *Cluster) Kubelet(env []string) (process.Spec, error) {
	config := fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %[1]s
tlsCertFile: %[2]s
tlsPrivateKeyFile: %[3]s
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %[4]s}
authorization: {mode: Webhook}
clusterDomain: cluster.local
clusterDNS: [%[5]s]
resolvConf: ""
containerRuntimeEndpoint: unix://%[6]s
volumePluginDir: %[7]s
cgroupDriver: cgroupfs
# The kubelet does not manage the machine's resources: the lab is a guest.
cgroupsPerQOS: false
enforceNodeAllocatable: []
localStorageCapacityIsolation: false
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
shutdownGracePeriod: 0s
`, network.Address, c.PKI("kubelet-server.crt"), c.PKI("kubelet-server.key"), c.PKI("ca.crt"),
		network.DNSService, containerdSocket, c.Layout.Run("data", "volume-plugins"))
	if err := write(c.Config("kubelet.yaml"), []byte(config)); err != nil {
		return process.Spec{}, fmt.Errorf("configure kubelet: %w", err)
	}
	return process.Spec{
		Name: "kubelet", Path: c.Layout.Bin("kubelet"), Env: env,
		Args: []string{
			"--kubeconfig=" + c.Kubeconfig("kubelet"), "--config=" + c.Config("kubelet.yaml"),
			"--root-dir=" + c.Layout.Run("data", "kubelet"),
			"--hostname-override=" + sandbox.NodeName, "--node-ip=" + network.Address,
			"--node-labels=gpu=true",
		},
	}, nil
}

// Proxy is kube-proxy: it turns Services into packet filter rules. Ready when
// the API server answers under its Service's address.
func (c *Cluster) Proxy(env []string, trust *tls.Config) (process.Spec, error) {
	config := fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
bindAddress: %[1]s
clusterCIDR: %[2]s
nodePortAddresses: [%[2]q]
hostnameOverride: %[3]s
clientConnection: {kubeconfig: %[4]s}
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
# Zero leaves the machine's settings alone.
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`, network.Address, network.PodCIDR, sandbox.NodeName, c.Kubeconfig("kube-proxy"))
	if err := write(c.Config("kube-proxy.yaml"), []byte(config)); err != nil {
		return process.Spec{}, fmt.Errorf("configure kube-proxy: %w", err)
	}
	return process.Spec{
		Name: "kube-proxy", Path: c.Layout.Bin("kube-proxy"), Env: env,
		Args:  []string{"--config=" + c.Config("kube-proxy.yaml")},
		Ready: process.HTTP("https://"+network.APIService+"/readyz", trust),
	}, nil
}

// DNS is CoreDNS. It knows the cluster's names and nothing else: outside names
// are refused.
func (c *Cluster) DNS(env []string) (process.Spec, error) {
	config := fmt.Sprintf(`cluster.local:1053 in-addr.arpa:1053 {
    bind %[1]s
    errors
    health 127.0.0.1:18083
    kubernetes cluster.local in-addr.arpa {
        kubeconfig %[2]s lab
        pods insecure
        ttl 5
    }
    cache 5
}
`, network.Address, c.Kubeconfig("admin"))
	if err := write(c.Config("Corefile"), []byte(config)); err != nil {
		return process.Spec{}, fmt.Errorf("configure coredns: %w", err)
	}
	return process.Spec{
		Name: "coredns", Path: c.Layout.Bin("coredns"), Env: env,
		Args:  []string{"-conf", c.Config("Corefile")},
		Ready: process.HTTP("http://127.0.0.1:18083/health", nil),
	}, nil
}
