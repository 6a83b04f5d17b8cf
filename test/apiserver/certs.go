package apiserver

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
	"os"
	"path/filepath"
	"time"
)

const (
	servingCert = "serving.crt"
	servingKey  = "serving.key"
	accountKey  = "accounts.key"
	tokenFile   = "tokens.csv"
)

// writeCerts writes the API server's certificate and key and the key that
// signs service account tokens into dir, and returns the certificate of the
// authority which clients must trust, in PEM. Keys are of an elliptic curve:
// RSA ones take seconds to make.
func writeCerts(dir string) ([]byte, error) {
	authorityKey, err := newKey()
	if err != nil {
		return nil, err
	}
	authority := certificate(1, "test-apiserver-ca")
	authority.IsCA, authority.BasicConstraintsValid = true, true
	authority.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return nil, fmt.Errorf("create authority certificate: %w", err)
	}
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	serving := certificate(2, "kube-apiserver")
	serving.KeyUsage = x509.KeyUsageDigitalSignature
	serving.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	serving.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	serving.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	servingDER, err := x509.CreateCertificate(rand.Reader, serving, authority, key.Public(), authorityKey)
	if err != nil {
		return nil, fmt.Errorf("create serving certificate: %w", err)
	}
	signer, err := newKey()
	if err != nil {
		return nil, err
	}
	if err := writePEM(dir, servingCert, "CERTIFICATE", servingDER); err != nil {
		return nil, err
	}
	if err := writeKey(dir, servingKey, key); err != nil {
		return nil, err
	}
	if err := writeKey(dir, accountKey, signer); err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authorityDER}), nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	return key, nil
}

func certificate(serial int64, name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(24 * time.Hour),
	}
}

func writeKey(dir, name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode key: %w", err)
	}
	return writePEM(dir, name, "EC PRIVATE KEY", der)
}

func writePEM(dir, name, kind string, der []byte) error {
	content := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
		return fmt.Errorf("write certificate: %w", err)
	}
	return nil
}
