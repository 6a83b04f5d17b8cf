package sync

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/dustin/go-humanize"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

// EventReread tells of an object whose bytes are read in the store, because
// nothing else vouches for them.
const EventReread = "reread"

// compare finds out whether the object of a file is the file. What this run
// knows of it already is in item.done, and is held against the store anew.
func (r *run) compare(ctx context.Context, item *item) error {
	known := item.done
	item.present, item.done = false, record.ManifestFile{}
	object, err := r.bucket.Head(ctx, r.key(item.file.Path))
	if store.CauseOf(err) == store.NoObject {
		item.reason = "absent"
		return nil
	}
	if err != nil {
		return err
	}
	former := r.former(item.file.Path)
	if known.SHA256 != "" && (known.S3 != nil || sourceDigest(item.file) == nil) {
		// This run saw the bytes, which is more than what was there before says.
		former = &record.ManifestFile{SHA256: known.SHA256}
	}
	noted := ""
	if object.Metadata[metaSHA256] == "" && known.SHA256 == "" && former == nil {
		if noted, err = r.receipt(ctx, item, object); err != nil {
			return err
		}
	}
	if sum := cmp.Or(known.SHA256, noted); object.Metadata[metaSHA256] == "" && len(sum) == 64 {
		// The upload of a large git file begins before its SHA-256 is known.
		metadata := map[string]string{metaSHA256: sum}
		maps.Copy(metadata, object.Metadata)
		object.Metadata = metadata
	}
	sum, reason := judge(item.file, object, former, r.can)
	if reason == "" && !unchanged(known, sum, object) {
		if reason, err = r.prove(ctx, item, known, sum, object); err != nil {
			return err
		}
	}
	if reason != "" {
		item.reason = reason
		return nil
	}
	if item.reason != reasonUploaded {
		item.reason = ""
	}
	item.present = true
	item.done = line(item.file, sum, object)
	return nil
}

// prove looks for what vouches for an object's bytes, from what costs nothing to
// reading them all, and says why nothing does.
func (r *run) prove(ctx context.Context, item *item, known record.ManifestFile, sum string, object store.Object) (reason string, err error) {
	if !r.recheck(known) {
		if r.vouched(item, known, sum, object) {
			return "", nil
		}
		if noted, err := r.receipt(ctx, item, object); err != nil || noted == sum {
			return "", err
		}
	}
	return r.reread(ctx, item, sum)
}

// recheck says whether the plan asks for the bytes of an object of which this
// run knows nothing yet.
func (r *run) recheck(known record.ManifestFile) bool { return r.plan.Recheck && known.SHA256 == "" }

// unchanged says whether an object is still the one that this run wrote or read.
func unchanged(known record.ManifestFile, sum string, object store.Object) bool {
	return known.S3 != nil && known.SHA256 == sum && known.S3.ETag != "" && known.S3.ETag == object.ETag && known.S3.ChecksumSHA256 == object.ChecksumSHA256
}

// vouched says whether an object's bytes are known to have the digest sum
// without being read. Metadata can be written by anyone over any bytes, so that
// the store must have computed the digest itself, or a checksum over the parts
// that a sync foretold from their bytes: in the manifest, or, see prove, in a
// receipt.
func (r *run) vouched(item *item, known record.ManifestFile, sum string, object store.Object) bool {
	if object.SHA256() != "" {
		return object.SHA256() == sum
	}
	if r.deps.Index > 0 && !r.mine(item) {
		// The worker whose file it is, and the first one, look closer.
		return true
	}
	if object.ChecksumSHA256 == "" {
		return false
	}
	lines := []record.ManifestFile{known}
	if r.previous != nil && r.previous.SchemaVersion >= record.ManifestSchema {
		lines = append(lines, r.previous.Files...)
	}
	for _, line := range lines {
		if line.SHA256 == sum && line.S3 != nil && line.S3.ChecksumSHA256 == object.ChecksumSHA256 {
			return true
		}
	}
	return false
}

// reread reads an object where it lies and says why it is not the file.
func (r *run) reread(ctx context.Context, item *item, sum string) (reason string, err error) {
	if r.plan.DryRun {
		return "nothing vouches for its bytes, a sync reads them again", nil
	}
	if err := r.fetches.Acquire(ctx, 1); err != nil {
		return "", err
	}
	defer r.fetches.Release(1)
	why := "nothing vouches for its bytes"
	if r.plan.Recheck {
		why = "as asked"
	}
	r.report.emit(record.Event{
		Name: EventReread, Message: fmt.Sprintf("reading %s (%s) in the store: %s", item.file.Path, humanize.IBytes(uint64(item.file.Size)), why),
		Fields: map[string]any{"path": item.file.Path, "bytes": item.file.Size},
	})
	check := newVerifier(item.file)
	err = r.bucket.Copy(ctx, r.key(item.file.Path), item.file.Size, check)
	if store.CauseOf(err) == store.NoObject {
		return "absent", nil
	}
	if err != nil {
		return "", err
	}
	got, err := check.check()
	var wrong *mismatch
	if errors.As(err, &wrong) || err == nil && got != sum {
		return "its bytes in the store are not the file's", nil
	}
	return "", err
}
