package sync_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/signing"
	"github.com/kubectl-inference/kubectl-inference/jobs/sync"
)

func signingKey(t *testing.T) (private []byte, verifier *signing.Verifier) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	private = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	signer, err := signing.ParseSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	return private, signer.Verifier()
}

// TestSign: the signature is there before the manifest that promises it, and a
// complete prefix gets one without another byte of the model.
func TestSign(t *testing.T) {
	w := newWorld(t, nil)
	private, verifier := signingKey(t)
	w.plan.Sign = true
	if _, err := w.run(); failure.KindOf(err) != failure.Usage || len(w.store.Keys(t, bucket)) > 0 {
		t.Fatalf("without a key: %v, and %q", err, w.store.Keys(t, bucket))
	}
	check := func(promised bool) {
		t.Helper()
		manifest, err := record.ParseManifest(w.read(w.prefix() + "/" + record.ManifestName))
		if err != nil {
			t.Fatal(err)
		}
		if problems, err := signing.Check(w.read(w.prefix()+"/"+record.SignatureName), manifest, verifier); err != nil || len(problems) > 0 {
			t.Errorf("the signature: %v %v", problems, err)
		}
		if (manifest.Signature != nil) != promised || (promised && *manifest.Signature != record.ManifestSignature{Path: "model.sig", KeyID: verifier.ID}) {
			t.Errorf("the manifest says %+v", manifest.Signature)
		}
	}
	w.deps.SignKey = private
	result, err := w.run()
	if err != nil || result.SignedBy != verifier.ID || len(result.Warnings) > 0 {
		t.Fatalf("%+v, error %v", result, err)
	}
	check(true)
	w.checkHealingKeeps(verifier)
	before := w.read(w.prefix() + "/" + record.SignatureName)
	result, err = w.run()
	if err != nil || !result.AlreadyComplete || result.SignedBy != verifier.ID || len(result.Warnings) > 0 || !slices.Equal(before, w.read(w.prefix()+"/"+record.SignatureName)) {
		t.Errorf("again: %+v, error %v", result, err)
	}

	// Another key signs what is there, on request alone.
	w.deps.SignKey, verifier = signingKey(t)
	if _, err := w.run(); failure.KindOf(err) != failure.Usage || !strings.Contains(failure.HintOf(err), "--replace-signature") || !slices.Equal(before, w.read(w.prefix()+"/"+record.SignatureName)) {
		t.Errorf("another key, not asked for: %v", err)
	}
	w.plan.ReplaceSignature = true
	result, err = w.run()
	check(true)
	if err != nil || !result.AlreadyComplete || result.SignedBy != verifier.ID || result.DownloadedBytes > 1<<20 {
		t.Errorf("another key: %+v, error %v", result, err)
	}

	// A complete prefix without a signature.
	other := newWorld(t, nil)
	if _, err := other.run(); err != nil {
		t.Fatal(err)
	}
	other.plan.Sign, other.deps.SignKey = true, w.deps.SignKey
	w = other
	if result, err = w.run(); err != nil || !result.AlreadyComplete || result.SignedBy != verifier.ID {
		t.Errorf("unsigned before: %+v, error %v", result, err)
	}
	check(true)
	if again, err := w.run(); err != nil || again.ManifestSHA256 != result.ManifestSHA256 {
		t.Errorf("signed again: %v", err)
	}
}

// checkHealingKeeps: a file is put right by somebody without the key; the files
// are the same, and so is their signature, which the new manifest names.
func (w *world) checkHealingKeeps(verifier *signing.Verifier) {
	w.t.Helper()
	plan, deps := w.plan, w.deps
	plan.Sign, deps.SignKey = false, nil
	before := w.read(w.prefix() + "/" + record.SignatureName)
	w.remove(w.prefix() + "/config.json")
	if _, err := sync.Run(w.t.Context(), plan, deps); err != nil {
		w.t.Fatal(err)
	}
	manifest := w.manifest()
	if manifest.Signature == nil || manifest.Signature.KeyID != verifier.ID || !slices.Equal(before, w.read(w.prefix()+"/"+record.SignatureName)) {
		w.t.Errorf("after the healing the manifest names %+v", manifest.Signature)
	}
	if _, root, err := signing.Inspect(before); err != nil || root != manifest.RootDigest {
		w.t.Errorf("the signature is of %s, %v", root, err)
	}
}
