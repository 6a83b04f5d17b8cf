package sync

import (
	"context"
	"fmt"
	"io"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/hub"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

// The metadata keys of an object: our SHA-256, and the digest by which the Hub
// knows a file that has no SHA-256 there.
const (
	metaSHA256  = "sha256"
	metaGitSHA1 = "git-sha1"
)

// maxManifest bounds what is read as a manifest: a million files.
const maxManifest = 256 << 20

// readPrevious reads the manifest of the prefix, if there is one.
func (r *run) readPrevious(ctx context.Context) error {
	r.stale, r.previous, r.manifestETag, r.result.ManifestSHA256 = false, nil, "", ""
	var data []byte
	object, err := r.bucket.Head(ctx, r.key(record.ManifestName))
	if err == nil {
		data, err = r.object(ctx, r.key(record.ManifestName), 0, -1)
	}
	if store.CauseOf(err) == store.NoObject {
		return nil
	}
	if err != nil {
		return err
	}
	r.stale, r.manifestETag = true, object.ETag
	manifest, err := record.ParseManifest(data)
	if failure.KindOf(err) == failure.Usage {
		// A newer release wrote it; this one must not undo that.
		return failure.Wrap(err, "read %s/%s", r.location(), record.ManifestName)
	}
	if err != nil {
		r.warn(fmt.Sprintf("the prefix has a manifest that is not sound, it will be written anew: %v", err))
		return nil
	}
	if !r.plan.Flat && (manifest.Revision != r.commit || manifest.ModelID != r.repo) {
		r.warn(fmt.Sprintf("the manifest found is of %s at %s, it will be written anew", manifest.ModelID, manifest.Revision))
		return nil
	}
	if r.plan.Flat && manifest.ModelID != r.repo && !r.plan.Replace {
		return failure.New(failure.Usage, "deliver to another prefix, or give --replace to have this model in place of that one",
			"sync %s: it holds %s at %s, and not %s", r.location(), failure.Clean(manifest.ModelID), failure.Clean(manifest.Revision), r.repo)
	}
	r.previous = &manifest
	r.result.ManifestSHA256 = digest(data)
	return nil
}

// object reads a small object.
func (r *run) object(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	body, err := r.bucket.Get(ctx, key, offset, length)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, maxManifest))
	if err != nil {
		return nil, fmt.Errorf("read s3://%s/%s: %w", r.bucket.Name(), key, err)
	}
	return data, nil
}

// look finds out which objects are there and right. One listing tells which
// keys exist; only those are worth a HEAD.
func (r *run) look(ctx context.Context) error {
	prefix := r.prefix + "/"
	if r.prefix == "" {
		prefix = ""
	}
	sizes := make(map[string]int64)
	r.sizes = sizes
	for object, err := range r.bucket.List(ctx, prefix) {
		if err != nil {
			return err
		}
		if r.isCheckpoint(object.Key) {
			r.checkpoints[object.Key] = true
			continue
		}
		sizes[object.Key] = object.Size
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(2 * r.plan.Parallel)
	planned := map[string]bool{r.key(record.ManifestName): true, r.key(record.SignatureName): true}
	for _, item := range r.files {
		key := r.key(item.file.Path)
		planned[key] = true
		size, found := sizes[key]
		switch {
		case !found:
			item.reason = "absent"
		case size != item.file.Size:
			item.reason = fmt.Sprintf("the object has %d bytes", size)
		default:
			group.Go(func() error { return r.compare(groupCtx, item) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, name := range r.formerPaths(r.left) {
		planned[r.key(name)] = true
	}
	r.reportExtra(sizes, planned)
	return nil
}

// reportExtra names objects below the prefix that are not of the plan: a server
// that reads the whole prefix would read them too.
func (r *run) reportExtra(sizes map[string]int64, planned map[string]bool) {
	extra := 0
	example := ""
	for key := range sizes {
		if planned[key] || record.OwnObject(strings.TrimPrefix(strings.TrimPrefix(key, r.prefix), "/")) {
			continue
		}
		if extra++; example == "" || key < example {
			example = key
		}
	}
	if extra > 0 && !(r.plan.Flat && r.prefix == "") {
		r.warn(fmt.Sprintf("the prefix holds %d objects that are not part of this plan, such as s3://%s/%s", extra, r.bucket.Name(), example))
	}
}

// former is what the previous manifest says about a path, or nil.
func (r *run) former(name string) *record.ManifestFile {
	if r.previous == nil || r.previous.Revision != r.commit {
		return nil
	}
	for i := range r.previous.Files {
		if r.previous.Files[i].Path == name {
			return &r.previous.Files[i]
		}
	}
	return nil
}

// judge says whether an object is the file, by digests alone and never by its
// ETag, and returns its SHA-256; reason says why it is not. Metadata can be
// written by anyone, so what the store computed itself must agree: the whole
// checksum, or for an object of parts the one that the manifest recorded.
func judge(file hub.File, object store.Object, former *record.ManifestFile, can record.StoreCapabilities) (sum, reason string) {
	if object.Size != file.Size {
		return "", fmt.Sprintf("the object has %d bytes", object.Size)
	}
	source := sourceDigest(file)
	sum = object.Metadata[metaSHA256]
	if sum == "" && former != nil && former.S3 != nil && former.S3.ChecksumSHA256 != "" && former.S3.ChecksumSHA256 == object.ChecksumSHA256 {
		sum = former.SHA256
	}
	switch {
	case len(sum) != 64:
		return "", "the object states no SHA-256"
	case source == nil && (former == nil || former.SHA256 != sum):
		return "", "the Hub states no digest to compare with"
	case source != nil && source.Algorithm == record.DigestSHA256 && source.Value != sum:
		return "", "the object has another SHA-256"
	case source != nil && source.Algorithm == record.DigestGitSHA1 && object.Metadata[metaGitSHA1] != source.Value:
		return "", "the object is of another git blob"
	case object.ChecksumSHA256 == "" && can.ReturnsSHA256:
		return "", "the store has no checksum for the object"
	case object.SHA256() != "" && object.SHA256() != sum:
		return "", "the store computed another SHA-256"
	case former != nil && former.S3 != nil && former.S3.ChecksumSHA256 != "" && former.S3.ChecksumSHA256 != object.ChecksumSHA256:
		return "", "the object changed after its manifest"
	}
	return sum, ""
}

// line is the manifest's entry for an object.
func line(file hub.File, sum string, object store.Object) record.ManifestFile {
	entry := record.ManifestFile{
		Path: file.Path, Size: file.Size, SHA256: sum, SourceDigest: sourceDigest(file), XetHash: file.XetHash,
		S3: &record.ManifestObject{
			ETag: object.ETag, VersionID: object.VersionID, Parts: 1,
			ChecksumSHA256: object.ChecksumSHA256, ChecksumType: object.ChecksumType,
		},
	}
	if part := store.PartSize(file.Size); file.Size > part {
		entry.S3.PartSize, entry.S3.Parts = part, int((file.Size+part-1)/part)
	}
	return entry
}

// complete returns the manifest of the prefix where it already promises the
// whole plan and every object was found right.
func (r *run) complete() *record.Manifest {
	if r.previous == nil || r.previous.Revision != r.commit || r.previous.SchemaVersion < 2 {
		return nil
	}
	for _, item := range r.files {
		former := r.former(item.file.Path)
		if !item.present || former == nil || former.SHA256 != item.done.SHA256 || former.Size != item.done.Size {
			return nil
		}
	}
	return r.previous
}
