package pki_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/test/lab/pki"
)

// TestMutualTLS proves the pairs by using them: a server that asks for client
// certificates, and clients with and without a right one.
func TestMutualTLS(t *testing.T) {
	ca := authority(t, "kubernetes-ca")
	other := authority(t, "other-ca")
	loopback := []net.IP{net.IPv4(127, 0, 0, 1)}

	server := issue(t, ca, pki.Request{CommonName: "kube-apiserver", IPs: loopback, DNSNames: []string{"kubernetes"}, Server: true})
	admin := issue(t, ca, pki.Request{CommonName: "admin", Organizations: []string{"system:masters"}, Client: true})

	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		subject := r.TLS.PeerCertificates[0].Subject
		_, _ = io.WriteString(w, subject.CommonName+" "+subject.Organization[0])
	}))
	srv.TLS = &tls.Config{
		Certificates: []tls.Certificate{keyPair(t, server)},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    pool(t, ca),
	}
	srv.StartTLS()
	defer srv.Close()

	tests := map[string]struct {
		roots  *x509.CertPool
		client *pki.Pair
		want   string
		fails  bool
	}{
		"admin":                        {roots: pool(t, ca), client: &admin, want: "admin system:masters"},
		"no certificate":               {roots: pool(t, ca), fails: true},
		"server of another authority":  {roots: pool(t, other), client: &admin, fails: true},
		"server certificate as client": {roots: pool(t, ca), client: &server, fails: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			config := &tls.Config{RootCAs: tt.roots}
			if tt.client != nil {
				config.Certificates = []tls.Certificate{keyPair(t, *tt.client)}
			}
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
			defer client.CloseIdleConnections()
			resp, err := client.Get(srv.URL)
			if tt.fails {
				if err == nil {
					resp.Body.Close()
					t.Fatal("the connection was accepted")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(body)); diff != "" {
				t.Errorf("identity (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSigningKey(t *testing.T) {
	private, public, err := pki.SigningKey()
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(private)
	if _, err := x509.ParsePKCS8PrivateKey(block.Bytes); err != nil {
		t.Errorf("private key: %v", err)
	}
	block, _ = pem.Decode(public)
	if _, err := x509.ParsePKIXPublicKey(block.Bytes); err != nil {
		t.Errorf("public key: %v", err)
	}
}

func authority(t *testing.T, name string) *pki.Authority {
	t.Helper()
	ca, err := pki.NewAuthority(name, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func issue(t *testing.T, ca *pki.Authority, r pki.Request) pki.Pair {
	t.Helper()
	pair, err := ca.Issue(r)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func keyPair(t *testing.T, p pki.Pair) tls.Certificate {
	t.Helper()
	cert, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func pool(t *testing.T, ca *pki.Authority) *x509.CertPool {
	t.Helper()
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(ca.Cert) {
		t.Fatal("the authority's certificate is not PEM")
	}
	return p
}
