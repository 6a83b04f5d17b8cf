// Package kube describes the cluster's own servers: which certificates,
// configuration files and flags etcd, the control plane, containerd, the
// kubelet, kube-proxy and CoreDNS are started with.
package kube

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
	"github.com/kubectl-inference/kubectl-inference/test/lab/network"
	"github.com/kubectl-inference/kubectl-inference/test/lab/pki"
	"github.com/kubectl-inference/kubectl-inference/test/lab/sandbox"
)

// Server is the API server's address inside the lab.
const Server = "https://" + network.Address + ":6443"

// Cluster is where the files of one cluster are.
type Cluster struct {
	Layout layout.Layout
	// CA is the cluster's authority.
	CA *pki.Authority
	// Admin is the client certificate of group system:masters.
	Admin pki.Pair
}

// PKI is the path of a certificate or key, such as "ca.crt".
func (c *Cluster) PKI(name string) string { return c.Layout.Run("pki", name) }

// Kubeconfig is the path of the kubeconfig of one component.
func (c *Cluster) Kubeconfig(name string) string { return c.Layout.Run("config", name+".kubeconfig") }

// Config is the path of a configuration file.
func (c *Cluster) Config(name string) string { return c.Layout.Run("config", name) }

// KEDACerts is the folder of KEDA's certificates, under the names that it looks
// for.
func (c *Cluster) KEDACerts() string { return c.Layout.Run("pki", "keda") }

// Prepare makes the certificates and kubeconfigs.
func Prepare(l layout.Layout, now time.Time) (*Cluster, error) {
	c := &Cluster{Layout: l}
	for _, dir := range []string{c.KEDACerts(), l.Run("config", "cni"), l.Run("data")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("create cluster files: %w", err)
		}
	}
	var err error
	if c.CA, err = pki.NewAuthority("kubernetes-ca", now); err != nil {
		return nil, err
	}
	front, err := pki.NewAuthority("front-proxy-ca", now)
	if err != nil {
		return nil, err
	}
	private, public, err := pki.SigningKey()
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		write(c.PKI("ca.crt"), c.CA.Cert), write(c.PKI("front-proxy-ca.crt"), front.Cert),
		write(c.PKI("sa.key"), private), write(c.PKI("sa.pub"), public),
		c.issue(front, "front-proxy", pki.Request{CommonName: "front-proxy-client", Client: true}),
	)
	for name, request := range certificates() {
		err = errors.Join(err, c.issue(c.CA, name, request))
	}
	for name, request := range users() {
		err = errors.Join(err, c.user(name, request))
	}
	// KEDA wants its authority beside its certificate.
	err = errors.Join(err, write(filepath.Join(c.KEDACerts(), "ca.crt"), c.CA.Cert))
	if err != nil {
		return nil, fmt.Errorf("create cluster files: %w", err)
	}
	return c, nil
}

// certificates are those that are used as files.
func certificates() map[string]pki.Request {
	loopback, node := net.ParseIP("127.0.0.1"), net.ParseIP(network.Address)
	return map[string]pki.Request{
		"apiserver": {CommonName: "kube-apiserver", Server: true,
			DNSNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
			IPs:      []net.IP{loopback, node, net.ParseIP(network.APIService)}},
		"kubelet-server":    {CommonName: sandbox.NodeName, Server: true, DNSNames: []string{sandbox.NodeName}, IPs: []net.IP{node}},
		"apiserver-kubelet": {CommonName: "kube-apiserver-kubelet-client", Organizations: []string{"system:masters"}, Client: true},
		// Both usages: the adapter and the operator prove themselves to each
		// other with this one certificate.
		filepath.Join("keda", "tls"): {CommonName: "keda", Server: true, Client: true,
			DNSNames: []string{"localhost", "keda-operator.keda.svc", "keda-metrics-apiserver.keda.svc", "keda-admission-webhooks.keda.svc"},
			IPs:      []net.IP{loopback, node}},
	}
}

// users are the components that speak to the API server. The API server itself
// makes the roles that belong to these names.
func users() map[string]pki.Request {
	return map[string]pki.Request{
		"admin":                   {CommonName: "kubernetes-admin", Organizations: []string{"system:masters"}},
		"kube-controller-manager": {CommonName: "system:kube-controller-manager"},
		"kube-scheduler":          {CommonName: "system:kube-scheduler"},
		"kube-proxy":              {CommonName: "system:kube-proxy"},
		"kubelet":                 {CommonName: "system:node:" + sandbox.NodeName, Organizations: []string{"system:nodes"}},
	}
}

func (c *Cluster) issue(authority *pki.Authority, name string, request pki.Request) error {
	pair, err := authority.Issue(request)
	if err != nil {
		return err
	}
	return errors.Join(write(c.PKI(name+".crt"), pair.Cert), write(c.PKI(name+".key"), pair.Key))
}

func (c *Cluster) user(name string, request pki.Request) error {
	request.Client = true
	pair, err := c.CA.Issue(request)
	if err != nil {
		return err
	}
	if name == "admin" {
		c.Admin = pair
	}
	config, err := pki.Kubeconfig(Server, c.CA.Cert, request.CommonName, pair)
	if err != nil {
		return err
	}
	return write(c.Kubeconfig(name), config)
}

// TLS trusts the cluster's authority and presents the administrator's
// certificate.
func (c *Cluster) TLS() (*tls.Config, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.CA.Cert)
	cert, err := tls.X509KeyPair(c.Admin.Cert, c.Admin.Key)
	if err != nil {
		return nil, fmt.Errorf("read administrator's certificate: %w", err)
	}
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}}, nil
}

// write writes a file that only its owner may read: most are keys.
func write(path string, data []byte) error { return os.WriteFile(path, data, 0o600) }
