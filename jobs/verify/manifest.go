package verify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/signing"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

// Bounds on what is read into memory: a manifest of about 100,000 files, and
// the signature of as many.
const (
	maxManifest  = 64 << 20
	maxSignature = 64 << 20
)

// small reads an object that is small where it is what it should be.
func (r *run) small(ctx context.Context, name string, limit int64) ([]byte, error) {
	body, err := r.bucket.Get(ctx, r.key(name), 0, -1)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s/%s: %w", r.result.Location, name, err)
	}
	if int64(len(data)) > limit {
		return nil, failure.New(failure.Failed, "", "read %s/%s: it has more than %d bytes, which no sync writes", r.result.Location, name, limit)
	}
	return data, nil
}

// readManifest reads the manifest and checks that it agrees with itself, with
// its prefix, and with the digest that it was written with.
func (r *run) readManifest(ctx context.Context) error {
	data, err := r.small(ctx, record.ManifestName, maxManifest)
	if store.CauseOf(err) == store.NoObject {
		return failure.New(failure.NotFound, "name the prefix itself, as the sync's location; a delivery that is not finished has none",
			"verify %s: it has no %s, so it is not complete", r.result.Location, record.ManifestName)
	}
	if err != nil {
		return err
	}
	r.manifest, err = record.ParseManifest(data)
	if failure.KindOf(err) == failure.Usage {
		return failure.Wrap(err, "verify %s", r.result.Location)
	}
	if err != nil {
		// A manifest that contradicts itself promises nothing.
		return failure.New(failure.Differs, "heal it: run `kubectl inference sync-model` again with the same revision and destination",
			"verify %s: %w", r.result.Location, err)
	}
	sum := sha256.Sum256(data)
	m, result := r.manifest, &r.result
	result.ManifestSHA256 = hex.EncodeToString(sum[:])
	result.ModelID, result.Revision, result.UploadedAt, result.RootDigest = m.ModelID, m.Revision, m.UploadedAt, m.RootDigest
	result.Listed = record.FileCount{Files: m.FileCount, Bytes: m.TotalSize}
	object, err := r.bucket.Head(ctx, r.key(record.ManifestName))
	if err != nil {
		return err
	}
	if stated := object.Metadata["sha256"]; stated != "" && stated != result.ManifestSHA256 {
		r.problem(record.ManifestName, record.ProblemMetadata, stated, result.ManifestSHA256)
	}
	// The commit in the prefix is a promise to those who mount it.
	last := r.prefix[strings.LastIndexByte(r.prefix, '/')+1:]
	if record.IsCommit(last) && last != m.Revision {
		r.problem(record.ManifestName, record.ProblemContent, "revision "+last+", which its prefix is named for", "revision "+m.Revision)
	}
	if m.SchemaVersion < record.ManifestSchema {
		r.warn("the manifest is of schema 1: it records no checksums of the store, so fast can prove objects of one part only")
	}
	return nil
}

// verifier reads the key before anything else is done.
func (r *run) verifier() (*signing.Verifier, error) {
	if r.plan.Key == "" {
		return nil, nil
	}
	return signing.ParseVerifier([]byte(r.plan.Key))
}

// checkSignature looks at the signature beside the manifest. One that a
// manifest promises must be there, even where no key was given.
func (r *run) checkSignature(ctx context.Context, verifier *signing.Verifier) error {
	// A publisher's own signature is one of the listed files as well.
	bundle, err := r.small(ctx, record.SignatureName, maxSignature)
	state := &r.result.Signature
	switch {
	case store.CauseOf(err) == store.NoObject:
		state.State = record.SignatureNone
		if verifier != nil || r.manifest.Signature != nil {
			state.State = record.SignatureInvalid
			r.problem(record.SignatureName, record.ProblemSignature, "a signature is expected", "there is none")
		}
		return nil
	case err != nil:
		return err
	}
	state.State, state.KeyID = record.SignatureUnchecked, signing.KeyID(bundle)
	if promised := r.manifest.Signature; promised != nil && promised.KeyID != state.KeyID {
		// Put in the place of the one that the manifest was written with.
		state.State = record.SignatureInvalid
		r.problem(record.SignatureName, record.ProblemSignature, "the manifest names a signature with key "+brief(promised.KeyID), "it names key "+cmp.Or(brief(state.KeyID), "none"))
		return nil
	}
	if verifier == nil {
		return nil
	}
	state.State = record.SignatureValid
	problems, err := signing.Check(bundle, r.manifest, verifier)
	if err != nil {
		problems = []record.ModelProblem{{Path: record.SignatureName, Kind: record.ProblemSignature, Expected: "a signature by the given key is expected", Found: failure.Clean(err.Error())}}
	}
	if len(problems) > 0 {
		state.State = record.SignatureInvalid
		r.result.Problems = append(r.result.Problems, problems...)
		return nil
	}
	if unsigned, err := signing.Unsigned(bundle, r.manifest); err == nil && len(unsigned) > 0 {
		r.warn(fmt.Sprintf("the signature does not cover %d of the files, such as %s: what git keeps for itself is never part of it", len(unsigned), unsigned[len(unsigned)-1]))
	}
	if r.manifest.Signature == nil {
		r.warn("the manifest does not name the signature: an earlier release, or another program, signed these files afterwards")
	}
	return nil
}

// brief is as much of a key's id as tells two apart.
func brief(id string) string {
	id = failure.Clean(id)
	return strings.ToValidUTF8(id[:min(len(id), 12)], "")
}

func (r *run) warn(text string) {
	r.result.Warnings = append(r.result.Warnings, text)
	r.deps.Emit(record.Event{Time: r.deps.Now().UTC(), Level: record.Warning, Name: "warning", Message: text})
}
