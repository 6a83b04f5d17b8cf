// Package pki makes the certificates and keys of a cluster. All keys are P-256:
// making one takes microseconds, where an RSA key takes up to a second.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// lifetime of every certificate: a lab is thrown away long before.
const lifetime = 365 * 24 * time.Hour

// Pair is a certificate and its private key, both PEM.
type Pair struct{ Cert, Key []byte }

// Authority signs certificates.
type Authority struct {
	Pair
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	now  time.Time
}

// Request says what a certificate is for.
type Request struct {
	// CommonName and Organizations are, in a client certificate, the user and
	// the groups that Kubernetes sees.
	CommonName    string
	Organizations []string
	// DNSNames and IPs are what a server certificate is valid for.
	DNSNames []string
	IPs      []net.IP
	// Server and Client select the extended key usages.
	Server, Client bool
}

// NewAuthority makes a self-signed authority, valid from an hour before now, so
// that clocks that differ a little do not matter.
func NewAuthority(commonName string, now time.Time) (*Authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template, err := newTemplate(commonName, now)
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate %s: %w", commonName, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read certificate %s: %w", commonName, err)
	}
	pair, err := encode(der, key)
	if err != nil {
		return nil, err
	}
	return &Authority{Pair: pair, cert: cert, key: key, now: now}, nil
}

// Issue makes a key and a certificate for it.
func (a *Authority) Issue(r Request) (Pair, error) {
	key, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	template, err := newTemplate(r.CommonName, a.now)
	if err != nil {
		return Pair{}, err
	}
	template.Subject.Organization = r.Organizations
	template.DNSNames = r.DNSNames
	template.IPAddresses = r.IPs
	template.KeyUsage = x509.KeyUsageDigitalSignature
	if r.Server {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if r.Client {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("sign certificate %s: %w", r.CommonName, err)
	}
	return encode(der, key)
}

// SigningKey makes the key pair that service account tokens are signed with:
// the private key and the public key, both PEM.
func SigningKey() (private, public []byte, err error) {
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	pair, err := encode(nil, key)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, nil, fmt.Errorf("encode public key: %w", err)
	}
	return pair.Key, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	return key, nil
}

func newTemplate(commonName string, now time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make serial number: %w", err)
	}
	return &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: commonName},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(lifetime),
		BasicConstraintsValid: true,
	}, nil
}

func encode(der []byte, key *ecdsa.PrivateKey) (Pair, error) {
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encode private key: %w", err)
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, nil
}
