package sync

import (
	"context"
	"fmt"

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

// standing reads the signature that is in the prefix. id and root are "" where
// there is none, or one that cannot be read.
func (r *run) standing(ctx context.Context) (bundle []byte, id, root string, err error) {
	bundle, err = r.object(ctx, r.key(record.SignatureName), 0, -1)
	if store.CauseOf(err) == store.NoObject {
		return nil, "", "", nil
	}
	if err != nil {
		return nil, "", "", err
	}
	if id, root, err = signing.Inspect(bundle); err != nil {
		r.warn(fmt.Sprintf("%s/%s is no signature of this model: %v", r.location(), record.SignatureName, failure.Clean(err.Error())))
		return bundle, "", "", nil
	}
	return bundle, id, root, nil
}

// checkStanding refuses to put a signature in the place of another key's, before
// anything is written: whoever may write the bucket is not thereby whom those
// trust who hold the other key.
func (r *run) checkStanding(ctx context.Context) error {
	if r.signer == nil || r.plan.ReplaceSignature {
		return nil
	}
	bundle, id, root, err := r.standing(ctx)
	if err != nil || bundle == nil || root == "" || id == r.signer.ID {
		return err
	}
	return failure.New(failure.Usage, "sign with that key, or give --replace-signature to have this one in its place",
		"sign %s: it is signed with another key, %s", r.location(), failure.Clean(id))
}

// sign writes the signature of a manifest that is about to be written, so that
// a signed prefix is complete only together with its signature. Without a key a
// signature that is there stays and is named, as long as it is of these files.
func (r *run) sign(ctx context.Context, manifest *record.Manifest) error {
	if r.signer == nil {
		return r.keep(ctx, manifest)
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

func (r *run) keep(ctx context.Context, manifest *record.Manifest) error {
	for _, file := range manifest.Files {
		if file.Path == record.SignatureName {
			return nil
		}
	}
	bundle, id, root, err := r.standing(ctx)
	if err != nil || bundle == nil || root == "" {
		return err
	}
	if root == manifest.RootDigest {
		manifest.Signature = &record.ManifestSignature{Path: record.SignatureName, KeyID: id}
		return nil
	}
	r.warn(fmt.Sprintf("the signature with key %s was of other files and is removed; sign these with --sign-secret", failure.Clean(id)))
	return r.bucket.Delete(ctx, r.key(record.SignatureName))
}

// signComplete signs a prefix that was complete before, and has its manifest
// name the key. A right signature by this key that is named already stays.
func (r *run) signComplete(ctx context.Context, manifest *record.Manifest) error {
	if r.signer == nil || r.deps.Index > 0 {
		return nil
	}
	bundle, _, _, err := r.standing(ctx)
	if err != nil {
		return err
	}
	right := false
	if bundle != nil {
		problems, err := signing.Check(bundle, *manifest, r.signer.Verifier())
		right = err == nil && len(problems) == 0
	}
	named := manifest.Signature != nil && manifest.Signature.KeyID == r.signer.ID
	r.result.SignedBy = r.signer.ID
	if right && named {
		return nil
	}
	manifest.Signature = &record.ManifestSignature{Path: record.SignatureName, KeyID: r.signer.ID}
	if !right {
		if err := r.sign(ctx, manifest); err != nil {
			return err
		}
	}
	if r.probed == "" {
		// Whether the manifest can be replaced on a condition.
		if err := r.probe(ctx); err != nil {
			return err
		}
	}
	options := store.PutOptions{}
	if r.can.ConditionalPut {
		options.IfMatch = r.manifestETag
	}
	_, err = r.put(ctx, *manifest, options)
	if store.CauseOf(err) != store.Condition {
		return err
	}
	// The answer to the first of two tries may have been lost.
	object, headErr := r.bucket.Head(ctx, r.key(record.ManifestName))
	if headErr == nil && object.Metadata[metaSHA256] == r.result.ManifestSHA256 {
		return nil
	}
	return failure.New(failure.Failed, "run it again", "sign %s: another sync wrote the manifest meanwhile", r.location())
}
