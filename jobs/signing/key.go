package signing

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

const (
	publicBlock = "PUBLIC KEY"
	makeKey     = "make one with `openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out signing-key.pem`"
	makePublic  = "make it with `openssl pkey -in signing-key.pem -pubout -out signing-key.pub.pem`"
)

// Signer signs with a private key.
type Signer struct {
	key *ecdsa.PrivateKey
	// ID is the SHA-256 of the public key's PEM, in hex: how OMS names a key.
	ID string
}

// ParseSigner reads a private key from PEM, as PKCS #8 or as SEC 1. No error
// holds any part of the key.
func ParseSigner(text []byte) (*Signer, error) {
	fail := func(why string) error { return failure.New(failure.Usage, makeKey, "read signing key: %s", why) }
	block := firstBlock(text, "PRIVATE KEY", "EC PRIVATE KEY", "ENCRYPTED PRIVATE KEY", publicBlock)
	if block == nil {
		return nil, fail("it is not a private key in PEM")
	}
	var parsed any
	var err error
	switch {
	case block.Type == publicBlock:
		return nil, fail("it is a public key, which verifies and cannot sign")
	case block.Type == "ENCRYPTED PRIVATE KEY", block.Headers["DEK-Info"] != "":
		return nil, failure.New(failure.Usage, "decrypt it with `openssl pkey -in FILE -out signing-key.pem` and keep it in a Secret",
			"read signing key: it is encrypted, and a Job cannot ask for a passphrase")
	case block.Type == "EC PRIVATE KEY":
		parsed, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		parsed, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	if err != nil {
		return nil, fail("its PEM block holds no key that can be read")
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || hashOf(&key.PublicKey) == 0 {
		return nil, fail("model signing allows the elliptic curves P-256, P-384 and P-521, and this is none of them")
	}
	id, err := keyID(&key.PublicKey)
	return &Signer{key: key, ID: id}, err
}

// Verifier checks what this key signs.
func (s *Signer) Verifier() *Verifier { return &Verifier{key: &s.key.PublicKey, ID: s.ID} }

// sign returns the ECDSA signature of message in ASN.1.
func (s *Signer) sign(message []byte) ([]byte, error) {
	hash := hashOf(&s.key.PublicKey)
	return s.key.Sign(rand.Reader, digest(hash, message), hash)
}

// Verifier checks signatures with a public key.
type Verifier struct {
	key *ecdsa.PublicKey
	// ID is as in Signer.
	ID string
}

// ParseVerifier reads a public key from PEM.
func ParseVerifier(text []byte) (*Verifier, error) {
	fail := func(why string) error { return failure.New(failure.Usage, makePublic, "read public key: %s", why) }
	block := firstBlock(text, publicBlock, "PRIVATE KEY", "EC PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "CERTIFICATE")
	switch {
	case block == nil:
		return nil, fail("it is not a public key in PEM")
	case block.Type == "CERTIFICATE":
		return nil, failure.New(failure.Usage, "take its key out with `openssl x509 -in FILE -pubkey -noout`", "read public key: it is a certificate")
	case block.Type != publicBlock:
		return nil, fail("it is a private key, which should not leave its Secret")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fail("its PEM block holds no key that can be read")
	}
	key, ok := parsed.(*ecdsa.PublicKey)
	if !ok || hashOf(key) == 0 {
		return nil, fail("model signing allows the elliptic curves P-256, P-384 and P-521, and this is none of them")
	}
	id, err := keyID(key)
	return &Verifier{key: key, ID: id}, err
}

func (v *Verifier) valid(message, signature []byte) bool {
	return ecdsa.VerifyASN1(v.key, digest(hashOf(v.key), message), signature)
}

// firstBlock returns the first PEM block of one of the types: a file of
// openssl ecparam begins with one of parameters.
func firstBlock(text []byte, types ...string) *pem.Block {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return nil
		}
		for _, wanted := range types {
			if block.Type == wanted {
				return block
			}
		}
	}
}

// hashOf is the hash that Sigstore pairs with a curve, 0 for another curve.
func hashOf(key *ecdsa.PublicKey) crypto.Hash {
	return map[string]crypto.Hash{"P-256": crypto.SHA256, "P-384": crypto.SHA384, "P-521": crypto.SHA512}[key.Curve.Params().Name]
}

func digest(hash crypto.Hash, message []byte) []byte {
	switch hash {
	case crypto.SHA384:
		sum := sha512.Sum384(message)
		return sum[:]
	case crypto.SHA512:
		sum := sha512.Sum512(message)
		return sum[:]
	}
	sum := sha256.Sum256(message)
	return sum[:]
}

func keyID(key *ecdsa.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", fmt.Errorf("read key: %w", err)
	}
	sum := sha256.Sum256(pem.EncodeToMemory(&pem.Block{Type: publicBlock, Bytes: der}))
	return hex.EncodeToString(sum[:]), nil
}
