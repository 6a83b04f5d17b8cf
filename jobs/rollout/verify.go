package rollout

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// statsInFlight bounds the parallel looks at objects.
const statsInFlight = 16

// verify refuses a prefix that is not known to be complete, names another
// revision, or lacks or has altered a file that its manifest lists.
func (r *run) verify(ctx context.Context) (record.Manifest, error) {
	model := r.plan.Model
	data, err := r.deps.Objects.Get(ctx, record.ManifestName)
	if failure.KindOf(err) == failure.NotFound {
		return record.Manifest{}, failure.New(failure.NotFound,
			"finish the delivery first: `kubectl inference sync-model` writes the manifest when every file is verified",
			"verify %s: it has no %s, so it is not complete", model.URI, record.ManifestName)
	}
	if err != nil {
		return record.Manifest{}, failure.Wrap(err, "verify %s", model.URI)
	}
	manifest, err := record.ParseManifest(data)
	if err != nil {
		return record.Manifest{}, failure.Wrap(err, "verify %s", model.URI)
	}
	if model.Revision != "" && manifest.Revision != model.Revision {
		return record.Manifest{}, failure.New(failure.Differs, "choose the prefix of that revision, or give --revision "+manifest.Revision,
			"verify %s: its manifest names revision %s, not %s", model.URI, manifest.Revision, model.Revision)
	}
	if r.plan.Verify == record.VerifyFast {
		if err := r.verifyObjects(ctx, manifest); err != nil {
			return record.Manifest{}, err
		}
	}
	r.say("verify", "%s holds %s at revision %s: %d files, %d bytes, as its manifest says", model.URI, manifest.ModelID, manifest.Revision, manifest.FileCount, manifest.TotalSize)
	return manifest, nil
}

func (r *run) verifyObjects(ctx context.Context, manifest record.Manifest) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(statsInFlight)
	for _, file := range manifest.Files {
		group.Go(func() error {
			size, digest, err := r.deps.Objects.Stat(ctx, file.Path)
			const hint = "heal it: run `kubectl inference sync-model` again with the same revision and destination"
			switch {
			case failure.KindOf(err) == failure.NotFound:
				return failure.New(failure.Differs, hint, "verify %s: %s is missing, the manifest lists it", r.plan.Model.URI, file.Path)
			case err != nil:
				return failure.Wrap(err, "verify %s: %s", r.plan.Model.URI, file.Path)
			case size != file.Size:
				return failure.New(failure.Differs, hint, "verify %s: %s has %d bytes, the manifest says %d", r.plan.Model.URI, file.Path, size, file.Size)
			case digest != "" && digest != file.SHA256:
				return failure.New(failure.Differs, hint, "verify %s: %s has SHA-256 %s, the manifest says %s", r.plan.Model.URI, file.Path, digest, file.SHA256)
			}
			return nil
		})
	}
	return group.Wait()
}
