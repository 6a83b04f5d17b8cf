package sync

import (
	"context"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/signing"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

// prepareSigning reads the key before anything else is done: what cannot be
// signed at the end is not begun.
func (r *run) prepareSigning() error {
	if !r.plan.Sign || r.plan.DryRun {
		return nil
	}
	if len(r.deps.SignKey) == 0 {
		return failure.New(failure.Usage, "give --sign-secret NAME, or --sign-key FILE with --local", "sign %s: there is no signing key", r.plan.Repo)
	}
	var err error
	r.signer, err = signing.ParseSigner(r.deps.SignKey)
	return err
}

// checkSignable refuses a model that has a file of the signature's name.
func (r *run) checkSignable() error {
	for _, item := range r.files {
		if r.plan.Sign && item.file.Path == record.SignatureName {
			return failure.New(failure.Usage, "leave the publisher's signature out with --exclude "+record.SignatureName+", or do not sign",
				"sign %s: the model has a file %s of its own", r.repo, record.SignatureName)
		}
	}
	return nil
}

// sign writes the signature of a manifest that is about to be written, so that
// a signed prefix is complete only together with its signature.
func (r *run) sign(ctx context.Context, manifest *record.Manifest) error {
	if r.signer == nil {
		return nil
	}
	manifest.Signature = &record.ManifestSignature{Path: record.SignatureName, KeyID: r.signer.ID}
	r.result.SignedBy = r.signer.ID
	bundle, err := signing.Sign(*manifest, r.signer)
	if err != nil {
		return err
	}
	_, err = r.bucket.Put(ctx, r.key(record.SignatureName), bundle, store.PutOptions{ContentType: "application/json"})
	return err
}

// signComplete signs a prefix that was complete before. Its manifest stays as
// it is; a signature by this key that is right stays too.
func (r *run) signComplete(ctx context.Context, manifest record.Manifest) error {
	if r.signer == nil || r.deps.Index > 0 {
		return nil
	}
	found, err := r.object(ctx, r.key(record.SignatureName), 0, -1)
	if err != nil && store.CauseOf(err) != store.NoObject {
		return err
	}
	if err == nil {
		problems, err := signing.Check(found, manifest, r.signer.Verifier())
		if err == nil && len(problems) == 0 {
			r.result.SignedBy = r.signer.ID
			return nil
		}
	}
	return r.sign(ctx, &manifest)
}
