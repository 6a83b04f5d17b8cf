package signing

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// pair makes a pair of keys as PEM.
func pair(t testing.TB, curve elliptic.Curve) (private, public []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return pemOf(t, key), pemOf(t, &key.PublicKey)
}

func pemOf(t testing.TB, key any) []byte {
	t.Helper()
	kind, marshal := "PRIVATE KEY", x509.MarshalPKCS8PrivateKey
	switch key.(type) {
	case *ecdsa.PublicKey, ed25519.PublicKey:
		kind, marshal = "PUBLIC KEY", x509.MarshalPKIXPublicKey
	}
	der, err := marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func sum(text string) string {
	digest := sha256.Sum256([]byte(text))
	return hex.EncodeToString(digest[:])
}

// manifestOf is a sealed manifest whose files' contents are their names.
func manifestOf(t testing.TB, paths ...string) record.Manifest {
	t.Helper()
	manifest := record.Manifest{ModelID: "lab/tiny", Revision: strings.Repeat("a", 40)}
	for _, name := range paths {
		manifest.Files = append(manifest.Files, record.ManifestFile{Path: name, Size: int64(len(name)), SHA256: sum(name)})
	}
	if err := manifest.Seal(); err != nil {
		t.Fatal(err)
	}
	return manifest
}

func parse(t testing.TB, private, public []byte) (*Signer, *Verifier) {
	t.Helper()
	signer, err := ParseSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := ParseVerifier(public)
	if err != nil {
		t.Fatal(err)
	}
	return signer, verifier
}

// TestIndependently checks our bundle with nothing but the standard library, as
// sections 4 to 6 of the specification say, for each curve of its registry.
func TestIndependently(t *testing.T) {
	manifest := manifestOf(t, "model.safetensors", "config.json", ".gitattributes", "sub/.gitignore", "Z", "ä", "a b+%")
	for name, test := range map[string]struct {
		curve elliptic.Curve
		hash  func([]byte) []byte
	}{
		"P-256": {elliptic.P256(), func(b []byte) []byte { s := sha256.Sum256(b); return s[:] }},
		"P-384": {elliptic.P384(), func(b []byte) []byte { s := sha512.Sum384(b); return s[:] }},
		"P-521": {elliptic.P521(), func(b []byte) []byte { s := sha512.Sum512(b); return s[:] }},
	} {
		t.Run(name, func(t *testing.T) {
			private, public := pair(t, test.curve)
			signer, verifier := parse(t, private, public)
			data, err := Sign(manifest, signer)
			if err != nil {
				t.Fatal(err)
			}
			var bundle struct {
				MediaType            string
				VerificationMaterial struct{ PublicKey struct{ Hint string } }
				DsseEnvelope         struct {
					Payload, PayloadType string
					Signatures           []struct{ Sig string }
				}
			}
			if err := json.Unmarshal(data, &bundle); err != nil {
				t.Fatal(err)
			}
			if id := sha256.Sum256(public); bundle.MediaType != "application/vnd.dev.sigstore.bundle.v0.3+json" || bundle.VerificationMaterial.PublicKey.Hint != hex.EncodeToString(id[:]) {
				t.Errorf("%s with key %s", bundle.MediaType, bundle.VerificationMaterial.PublicKey.Hint)
			}
			payload, _ := base64.StdEncoding.DecodeString(bundle.DsseEnvelope.Payload)
			signature, _ := base64.StdEncoding.DecodeString(bundle.DsseEnvelope.Signatures[0].Sig)
			kind := bundle.DsseEnvelope.PayloadType
			message := "DSSEv1 " + strconv.Itoa(len(kind)) + " " + kind + " " + strconv.Itoa(len(payload)) + " " + string(payload)
			block, _ := pem.Decode(public)
			key, err := x509.ParsePKIXPublicKey(block.Bytes)
			if err != nil || !ecdsa.VerifyASN1(key.(*ecdsa.PublicKey), test.hash([]byte(message)), signature) {
				t.Fatalf("the signature is wrong, error %v", err)
			}
			var content struct {
				Type          string `json:"_type"`
				PredicateType string
				Subject       []struct {
					Name   string
					Digest map[string]string
				}
				Predicate struct {
					Resources     []struct{ Name, Digest, Algorithm string }
					Serialization map[string]any
				}
			}
			if err := json.Unmarshal(payload, &content); err != nil {
				t.Fatal(err)
			}
			names, root := []string{}, sha256.New()
			for _, file := range content.Predicate.Resources {
				names = append(names, file.Name)
				raw, _ := hex.DecodeString(file.Digest)
				root.Write(raw)
				if file.Algorithm != "sha256" || file.Digest != sum(file.Name) {
					t.Errorf("%s: %s %s", file.Name, file.Algorithm, file.Digest)
				}
			}
			if !sort.StringsAreSorted(names) || !cmp.Equal(names, []string{"Z", "a b+%", "config.json", "model.safetensors", "sub/.gitignore", "ä"}) {
				t.Errorf("the files are %q", names)
			}
			if digest := hex.EncodeToString(root.Sum(nil)); len(content.Subject) != 1 || content.Subject[0].Digest["sha256"] != digest || digest != manifest.RootDigest {
				t.Errorf("the subject is %v, the root digest %s, the manifest's %s", content.Subject, digest, manifest.RootDigest)
			}
			want := map[string]any{"method": "files", "hash_type": "sha256", "allow_symlinks": false,
				"ignore_paths": []any{".git", ".gitattributes", ".github", ".gitignore", "_MANIFEST.json", "model.sig"}}
			if diff := cmp.Diff(want, content.Predicate.Serialization); diff != "" || content.Type != "https://in-toto.io/Statement/v1" || content.PredicateType != "https://model_signing/signature/v1.0" {
				t.Errorf("%s %s %s", content.Type, content.PredicateType, diff)
			}
			if problems, err := Check(data, manifest, verifier); err != nil || len(problems) > 0 {
				t.Errorf("we do not accept it: %v %v", problems, err)
			}
		})
	}
}

// TestOthersSignatures: bundles of the reference implementation and of a Go
// implementation are accepted, for the files that they were made of.
func TestOthersSignatures(t *testing.T) {
	public, err := os.ReadFile("testdata/oms/key.pub.pem")
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := ParseVerifier(public)
	if err != nil {
		t.Fatal(err)
	}
	simple := map[string]string{
		"signme-1": "bc9a717db6064a32cbe9eae6fc40651dd6d36ef1757183f590eff2b1765d7ebc",
		"signme-2": "32dcb1f8e1ae52d5963e56a6ba06ab58b424c15ed2a6b70d2feca1d089370028",
	}
	for name, files := range map[string]map[string]string{
		"python-1.1.0": simple,
		"go":           simple,
		"python-multi-file": {
			"config.json":        "5e472403951781d18d5f790aa5b3316a5f535fc37a1052f6659c9c6af82e3643",
			"subdir/adapter.bin": "58b991c23d339f9d25eccb315cf8ba9edb608bb60be3be6c73b03a4481dc7682",
			"weights.bin":        "4555555dc68d872c2270ba89ecc5f6f094812f65372b37e50071fe5168031c49",
		},
	} {
		t.Run(name, func(t *testing.T) {
			bundle, err := os.ReadFile(filepath.Join("testdata/oms", name+".sig"))
			if err != nil {
				t.Fatal(err)
			}
			manifest := record.Manifest{ModelID: "a/b", Revision: strings.Repeat("a", 40)}
			for path, digest := range files {
				manifest.Files = append(manifest.Files, record.ManifestFile{Path: path, SHA256: digest})
			}
			if err := manifest.Seal(); err != nil {
				t.Fatal(err)
			}
			if problems, err := Check(bundle, manifest, verifier); err != nil || len(problems) > 0 {
				t.Errorf("refused: %v %v", problems, err)
			}
			if got := KeyID(bundle); got != verifier.ID {
				t.Errorf("the key is %s, not %s", got, verifier.ID)
			}
			manifest.Files[0].SHA256 = sum("other")
			if problems, err := Check(bundle, manifest, verifier); err != nil || len(problems) != 1 {
				t.Errorf("a changed file: %v %v", problems, err)
			}
		})
	}
}

// change alters a bundle's JSON.
func change(t *testing.T, bundle []byte, alter func(bundle, envelope map[string]any)) []byte {
	t.Helper()
	var document map[string]any
	if err := json.Unmarshal(bundle, &document); err != nil {
		t.Fatal(err)
	}
	alter(document, document["dsseEnvelope"].(map[string]any))
	data, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// seal signs a payload of any kind, as an attacker with the key could.
func seal(t *testing.T, signer *Signer, payload string) []byte {
	t.Helper()
	signature, err := signer.sign(encode(payloadType, []byte(payload)))
	if err != nil {
		t.Fatal(err)
	}
	data, _ := json.Marshal(map[string]any{
		"mediaType": mediaType, "verificationMaterial": map[string]any{"publicKey": map[string]any{"hint": signer.ID}},
		"dsseEnvelope": map[string]any{"payload": []byte(payload), "payloadType": payloadType, "signatures": []any{map[string]any{"sig": signature, "keyid": nil}}},
	})
	return data
}

func TestCheckRefuses(t *testing.T) {
	private, public := pair(t, elliptic.P256())
	signer, verifier := parse(t, private, public)
	otherPrivate, _ := pair(t, elliptic.P256())
	other, err := ParseSigner(otherPrivate)
	if err != nil {
		t.Fatal(err)
	}
	manifest := manifestOf(t, "config.json", "model.safetensors")
	good, err := Sign(manifest, signer)
	if err != nil {
		t.Fatal(err)
	}
	forged, err := Sign(manifest, other)
	if err != nil {
		t.Fatal(err)
	}
	statement := func(old, new string) string {
		var envelope struct{ DsseEnvelope struct{ Payload []byte } }
		if err := json.Unmarshal(good, &envelope); err != nil {
			t.Fatal(err)
		}
		text := string(envelope.DsseEnvelope.Payload)
		if !strings.Contains(text, old) {
			t.Fatalf("%q is not in %s", old, text)
		}
		return strings.Replace(text, old, new, 1)
	}
	for name, test := range map[string]struct {
		bundle []byte
		want   string
	}{
		"nothing":     {nil, "it is not a Sigstore bundle in JSON"},
		"not JSON":    {[]byte("-----BEGIN"), "it is not a Sigstore bundle in JSON"},
		"cut":         {good[:len(good)/2], "it is not a Sigstore bundle in JSON"},
		"another key": {forged, "it was made with key " + other.ID[:12] + ", not with the given key " + verifier.ID[:12]},
		"another key, our name": {change(t, forged, func(b, _ map[string]any) {
			b["verificationMaterial"] = map[string]any{"publicKey": map[string]any{"hint": verifier.ID}}
		}), "it is not by the given key, or was changed after signing"},
		"another key, no name": {change(t, forged, func(b, _ map[string]any) { b["verificationMaterial"] = map[string]any{"publicKey": map[string]any{}} }), "it is not by the given key, or was changed after signing"},
		"changed payload":      {change(t, good, func(_, e map[string]any) { e["payload"] = []byte(statement("config.json", "config.jsoN")) }), "it is not by the given key, or was changed after signing"},
		"no signature":         {change(t, good, func(_, e map[string]any) { e["signatures"] = []any{} }), "it has no envelope with one signature"},
		"two signatures":       {change(t, good, func(_, e map[string]any) { s := e["signatures"].([]any); e["signatures"] = append(s, s[0]) }), "it has no envelope with one signature"},
		"no envelope":          {change(t, good, func(b, _ map[string]any) { delete(b, "dsseEnvelope") }), "it has no envelope with one signature"},
		"another media type":   {change(t, good, func(b, _ map[string]any) { b["mediaType"] = "application/json" }), `its media type "application/json" is not that of a Sigstore bundle`},
		"another payload type": {change(t, good, func(_, e map[string]any) { e["payloadType"] = "text/plain" }), `its payload is "text/plain", not application/vnd.in-toto+json`},
		"a certificate": {change(t, good, func(b, _ map[string]any) {
			b["verificationMaterial"] = map[string]any{"certificate": map[string]any{"rawBytes": "AAAA"}}
		}), "it was made with a certificate, and only signatures by a key can be checked here"},
		"no material":              {change(t, good, func(b, _ map[string]any) { delete(b, "verificationMaterial") }), "it does not say that it was made with a key"},
		"signed, not a statement":  {seal(t, signer, "[]"), "the signed statement cannot be read: json: cannot unmarshal array into Go value of type signing.statement"},
		"signed, another type":     {seal(t, signer, statement("in-toto.io/Statement/v1", "in-toto.io/Statement/v0.1")), `the signed statement is of type "https://in-toto.io/Statement/v0.1", not https://in-toto.io/Statement/v1`},
		"signed, another claim":    {seal(t, signer, statement("model_signing/signature/v1.0", "slsa.dev/provenance/v1")), `the signed statement is about "https://slsa.dev/provenance/v1", not https://model_signing/signature/v1.0`},
		"signed, in shards":        {seal(t, signer, statement(`"method":"files"`, `"method":"shards"`)), `the signed statement has sha256 of method "shards": only sha256 of files can be compared`},
		"signed, no files":         {seal(t, signer, `{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"a"}],"predicateType":"https://model_signing/signature/v1.0","predicate":{"resources":[],"serialization":{"method":"files","hash_type":"sha256"}}}`), "the signed statement lists no files"},
		"signed, no serialization": {seal(t, signer, `{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"a"}],"predicateType":"https://model_signing/signature/v1.0","predicate":{"resources":[{}]}}`), "the signed statement lists no files"},
		"signed, a file twice":     {seal(t, signer, statement(`"name":"model.safetensors"`, `"name":"config.json"`)), `the signed statement has no single SHA-256 for "config.json"`},
		"signed, a wrong subject":  {seal(t, signer, statement(manifest.RootDigest, sum("x"))), "the signed statement's subject is " + sum("x") + ", its files' root digest " + manifest.RootDigest},
	} {
		t.Run(name, func(t *testing.T) {
			problems, err := Check(test.bundle, manifest, verifier)
			if err == nil || err.Error() != test.want {
				t.Errorf("got %v and %v, want %s", problems, err, test.want)
			}
		})
	}
}

// TestCompares: the manifest must list what was signed, no less and no more.
func TestCompares(t *testing.T) {
	private, public := pair(t, elliptic.P384())
	signer, verifier := parse(t, private, public)
	bundle, err := Sign(manifestOf(t, "a", "b"), signer)
	if err != nil {
		t.Fatal(err)
	}
	altered := manifestOf(t, "a", "b")
	altered.Files[1].SHA256 = sum("x")
	for name, test := range map[string]struct {
		manifest record.Manifest
		want     []record.ModelProblem
	}{
		"the same":         {manifestOf(t, "b", "a"), []record.ModelProblem{}},
		"git's own files":  {manifestOf(t, "a", "b", ".gitattributes"), []record.ModelProblem{}},
		"a changed file":   {altered, []record.ModelProblem{{Path: "b", Kind: "signature", Expected: "signed as " + sum("b"), Found: sum("x")}}},
		"one more":         {manifestOf(t, "a", "b", "c"), []record.ModelProblem{{Path: "c", Kind: "signature", Expected: "signed", Found: "not part of the signature"}}},
		"a nested gitfile": {manifestOf(t, "a", "b", "x/.gitignore"), []record.ModelProblem{{Path: "x/.gitignore", Kind: "signature", Expected: "signed", Found: "not part of the signature"}}},
		"one less":         {manifestOf(t, "b"), []record.ModelProblem{{Path: "a", Kind: "signature", Expected: "signed as " + sum("a"), Found: "not in the manifest"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Check(bundle, test.manifest, verifier)
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestKeys(t *testing.T) {
	private, public := pair(t, elliptic.P256())
	small, smallPublic := pair(t, elliptic.P224())
	edPublic, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(private)
	parsed, _ := x509.ParsePKCS8PrivateKey(block.Bytes)
	sec1DER, err := x509.MarshalECPrivateKey(parsed.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	sec1 := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: sec1DER})
	parameters := pem.EncodeToMemory(&pem.Block{Type: "EC PARAMETERS", Bytes: []byte{6, 8, 42, 134, 72, 206, 61, 3, 1, 7}})
	encrypted := pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")})
	broken := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")})

	curves := "model signing allows the elliptic curves P-256, P-384 and P-521, and this is none of them"
	for name, test := range map[string]struct {
		text []byte
		want string
	}{
		"PKCS #8":               {private, ""},
		"SEC 1":                 {sec1, ""},
		"behind its parameters": {append(bytes.Clone(parameters), sec1...), ""},
		"nothing":               {nil, "read signing key: it is not a private key in PEM"},
		"not PEM":               {[]byte("secret-in-plain"), "read signing key: it is not a private key in PEM"},
		"a public key":          {public, "read signing key: it is a public key, which verifies and cannot sign"},
		"encrypted":             {encrypted, "read signing key: it is encrypted, and a Job cannot ask for a passphrase"},
		"broken":                {broken, "read signing key: its PEM block holds no key that can be read"},
		"Ed25519":               {pemOf(t, ed), "read signing key: " + curves},
		"P-224":                 {small, "read signing key: " + curves},
	} {
		t.Run("sign with "+name, func(t *testing.T) {
			checkKey(t, test.want, func() error { _, err := ParseSigner(test.text); return err })
		})
	}
	for name, test := range map[string]struct {
		text []byte
		want string
	}{
		"a public key":  {public, ""},
		"a private key": {private, "read public key: it is a private key, which should not leave its Secret"},
		"nothing":       {nil, "read public key: it is not a public key in PEM"},
		"a certificate": {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), "read public key: it is a certificate"},
		"broken":        {pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("x")}), "read public key: its PEM block holds no key that can be read"},
		"Ed25519":       {pemOf(t, edPublic), "read public key: " + curves},
		"P-224":         {smallPublic, "read public key: " + curves},
	} {
		t.Run("verify with "+name, func(t *testing.T) {
			checkKey(t, test.want, func() error { _, err := ParseVerifier(test.text); return err })
		})
	}
	if hashOf(&parsed.(*ecdsa.PrivateKey).PublicKey) != crypto.SHA256 {
		t.Error("P-256 goes with SHA-256")
	}
}

func checkKey(t *testing.T, want string, parse func() error) {
	t.Helper()
	err := parse()
	switch {
	case want == "" && err != nil:
		t.Error(err)
	case want != "" && (err == nil || err.Error() != want || failure.KindOf(err) != failure.Usage || failure.HintOf(err) == ""):
		t.Errorf("got %v of kind %d with hint %q, want %s", err, failure.KindOf(err), failure.HintOf(err), want)
	}
}

func TestSignRefuses(t *testing.T) {
	private, _ := pair(t, elliptic.P256())
	signer, err := ParseSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	unsealed := manifestOf(t, "a")
	unsealed.RootDigest = sum("x")
	for name, manifest := range map[string]record.Manifest{
		"its own model.sig (a publisher's)": manifestOf(t, "a", "model.sig"),
		"no file but git's":                 manifestOf(t, ".gitattributes"),
		"a root digest of other files":      unsealed,
	} {
		if _, err := Sign(manifest, signer); err == nil {
			t.Errorf("%s is signed", name)
		}
	}
}

// FuzzCheck: a bundle comes from a bucket that others can write.
func FuzzCheck(f *testing.F) {
	private, public := pair(f, elliptic.P256())
	signer, verifier := parse(f, private, public)
	manifest := manifestOf(f, "a", "b")
	good, err := Sign(manifest, signer)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","dsseEnvelope":{"signatures":[{}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		problems, err := Check(data, manifest, verifier)
		if err == nil && len(problems) == 0 && KeyID(data) != "" && KeyID(data) != verifier.ID {
			t.Errorf("accepted with key %s", KeyID(data))
		}
	})
}
