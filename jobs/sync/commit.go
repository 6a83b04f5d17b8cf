package sync

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

// confirmRounds is how often files that changed during the run are brought over
// again before it gives up.
const confirmRounds = 3

// promise writes the manifest once every object that it will name was seen to be
// right, and looks again afterwards: what changed meanwhile makes it false, and
// a false one does not stay.
func (r *run) promise(ctx context.Context) (*record.Manifest, error) {
	for round := 1; ; round++ {
		changed, err := r.confirm(ctx)
		if err != nil {
			return nil, err
		}
		if len(changed) == 0 {
			if err := r.holds(ctx); err != nil {
				return nil, err
			}
			manifest, err := r.write(ctx)
			if err != nil {
				return nil, err
			}
			if changed, err = r.confirm(ctx); err == nil && len(changed) == 0 {
				if err = r.holds(ctx); err == nil {
					return manifest, nil
				}
			}
			if err := errors.Join(err, r.withdraw(ctx)); err != nil {
				return nil, err
			}
		}
		if round > confirmRounds {
			return nil, failure.New(failure.Failed, "find out what else writes below the prefix, and run this one again then",
				"confirm %s: %s (%s) was changed again and again while it was delivered", r.location(), changed[0].file.Path, changed[0].reason)
		}
		for _, item := range changed {
			r.report.again(item.file.Path, fmt.Errorf("%s was changed in the store during the run (%s)", item.file.Path, item.reason), round)
			r.recount(item)
		}
		if err := r.transfer(ctx); err != nil {
			return nil, err
		}
	}
}

// confirm asks the store for every object once more, whoever wrote it: what the
// manifest promises is what the store says now. It returns those that are not
// right, which are this worker's from now on.
func (r *run) confirm(ctx context.Context) (changed []*item, err error) {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(2 * r.plan.Parallel)
	for _, item := range r.files {
		if r.deps.Index == 0 || r.mine(item) {
			group.Go(func() error { return r.compare(groupCtx, item) })
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, item := range r.files {
		if (r.deps.Index == 0 || r.mine(item)) && !item.present {
			item.worker = r.deps.Index
			changed = append(changed, item)
		}
	}
	return changed, nil
}

// withdraw removes the manifest that this run wrote.
func (r *run) withdraw(ctx context.Context) error {
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	key := r.key(record.ManifestName)
	found, err := r.bucket.Head(clean, key)
	if store.CauseOf(err) == store.NoObject || err == nil && found.Metadata[metaSHA256] != r.result.ManifestSHA256 {
		return nil
	}
	if err != nil {
		return err
	}
	return r.bucket.Delete(clean, key)
}

// write puts the manifest, last and once.
func (r *run) write(ctx context.Context) (*record.Manifest, error) {
	manifest := r.manifest()
	if err := manifest.Seal(); err != nil {
		return nil, err
	}
	if err := r.sign(ctx, &manifest); err != nil {
		return nil, err
	}
	_, err := r.put(ctx, manifest, store.PutOptions{IfAbsent: r.can.ConditionalPut})
	if store.CauseOf(err) == store.Condition {
		return r.other(ctx, r.key(record.ManifestName), manifest)
	}
	if err != nil {
		return nil, err
	}
	return &manifest, nil
}

// put writes a manifest, and its digest into the result.
func (r *run) put(ctx context.Context, manifest record.Manifest, options store.PutOptions) (store.Object, error) {
	data, err := record.Encode(manifest)
	if err != nil {
		return store.Object{}, fmt.Errorf("write manifest: %w", err)
	}
	sum := digest(data)
	options.ContentType, options.SHA256 = "application/json", sum
	options.Metadata = map[string]string{"revision": r.commit, metaSHA256: sum}
	r.result.ManifestSHA256 = sum
	return r.bucket.Put(ctx, r.key(record.ManifestName), data, options)
}

// other reads the manifest of the run that was faster. Where it promises the
// same files, that run's success is this one's too.
func (r *run) other(ctx context.Context, key string, ours record.Manifest) (*record.Manifest, error) {
	data, err := r.object(ctx, key, 0, -1)
	if err != nil {
		return nil, err
	}
	theirs, err := record.ParseManifest(data)
	if err != nil {
		return nil, err
	}
	if theirs.Revision != ours.Revision || theirs.RootDigest != ours.RootDigest {
		return nil, failure.New(failure.Failed, "wait for the other sync to end and run this one again",
			"write s3://%s/%s: another sync wrote the manifest of %s at %s meanwhile", r.bucket.Name(), key, theirs.ModelID, theirs.Revision)
	}
	r.result.ManifestSHA256 = digest(data)
	return &theirs, nil
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func (r *run) manifest() record.Manifest {
	manifest := record.Manifest{
		ModelID: r.repo, Revision: r.commit, RequestedRevision: r.plan.Revision, Endpoint: r.hub.Endpoint(),
		UploadedAt: r.deps.Now().UTC(), Tool: record.ManifestTool{Name: "kubectl-inference", Version: r.deps.Version},
		Skipped: slices.Clone(r.skipped), StoreCapabilities: r.can,
	}
	r.selection(&manifest)
	for _, item := range r.files {
		manifest.Files = append(manifest.Files, item.done)
	}
	return manifest
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
