package sync

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"

	"golang.org/x/sync/errgroup"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

// confirm asks the store for every object once more: what the manifest promises
// is what the store says, not what the upload believed.
func (r *run) confirm(ctx context.Context) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(2 * r.plan.Parallel)
	for _, item := range r.files {
		if item.reason != reasonUploaded {
			continue
		}
		group.Go(func() error {
			key := r.key(item.file.Path)
			object, err := r.bucket.Head(groupCtx, key)
			if err != nil {
				return err
			}
			if !isFile(item, item.done.SHA256, object, r.can) {
				return fmt.Errorf("confirm s3://%s/%s: the object is not the one that was written", r.bucket.Name(), key)
			}
			item.done = line(item.file, item.done.SHA256, object)
			return nil
		})
	}
	return group.Wait()
}

// isFile says whether an object is the file whose bytes this run saw to have
// the given SHA-256.
func isFile(item *item, sum string, object store.Object, can record.StoreCapabilities) bool {
	if object.Metadata[metaSHA256] == "" {
		// The upload of a large git file begins before its SHA-256 is known.
		metadata := map[string]string{metaSHA256: sum}
		maps.Copy(metadata, object.Metadata)
		object.Metadata = metadata
	}
	var former *record.ManifestFile
	if sourceDigest(item.file) == nil {
		// The user accepts a file for which the Hub states no digest.
		former = &record.ManifestFile{SHA256: sum}
	}
	got, reason := judge(item.file, object, former, can)
	return reason == "" && got == sum
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
	data, err := record.Encode(manifest)
	if err != nil {
		return nil, fmt.Errorf("write manifest: %w", err)
	}
	key := r.key(record.ManifestName)
	sum := digest(data)
	options := store.PutOptions{
		ContentType: "application/json", IfAbsent: r.can.ConditionalPut, SHA256: sum,
		Metadata: map[string]string{"revision": r.commit, metaSHA256: sum},
	}
	_, err = r.bucket.Put(ctx, key, data, options)
	if store.CauseOf(err) == store.Condition {
		return r.other(ctx, key, manifest)
	}
	if err != nil {
		return nil, err
	}
	r.result.ManifestSHA256 = sum
	return &manifest, nil
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
		Include: orEmpty(r.plan.Include), Exclude: orEmpty(r.plan.Exclude), Preset: r.plan.Preset, Skipped: r.skipped,
		StoreCapabilities: r.can,
	}
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
