package sync

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

// ourChecksum is the algorithm of our uploads. Other tools have other ones, CRC
// by default.
const ourChecksum = "SHA256"

// sweep gives up the uploads that killed runs left for files of this plan, and
// their checkpoints. They are invisible and billed. The model is complete by
// now, so nobody needs them, not even a run at the same time: it finds the
// object. A failure here is only worth a warning.
func (r *run) sweep(ctx context.Context) {
	err := errors.Join(r.dropCheckpoints(ctx), r.dropProbes(ctx))
	sizes := make(map[string]int64, len(r.files))
	for _, item := range r.files {
		sizes[r.key(item.file.Path)] = item.file.Size
	}
	uploads, listErr := r.bucket.OpenUploads(ctx, r.prefix)
	err = errors.Join(err, listErr)
	unknown := 0
	for _, upload := range uploads {
		// Of this run's own probe too: where the answer to the start of an
		// upload was lost, the SDK started a second one.
		if upload.Key == r.probed || strings.HasPrefix(upload.Key, r.key(record.ProbePrefix)) && upload.Initiated.Before(r.started) {
			err = errors.Join(err, r.bucket.AbortUpload(ctx, upload))
			continue
		}
		size, planned := sizes[upload.Key]
		if !planned || size <= store.PartSize(size) {
			continue
		}
		switch upload.Checksum {
		case ourChecksum:
			err = errors.Join(err, r.bucket.AbortUpload(ctx, upload))
		case "":
			unknown++
		}
	}
	if unknown > 0 {
		r.warn(fmt.Sprintf("%d unfinished uploads of this model's files were left alone: the store does not say whose they are", unknown))
	}
	if err != nil {
		r.warn(fmt.Sprintf("unfinished uploads of earlier runs may remain: %v", err))
	}
}

// dropCheckpoints gives up every upload that a checkpoint names.
func (r *run) dropCheckpoints(ctx context.Context) error {
	var failed error
	for object, err := range r.bucket.List(ctx, r.key(record.CheckpointFolder)+"/") {
		if err != nil {
			return errors.Join(failed, err)
		}
		if !r.isCheckpoint(object.Key) {
			continue
		}
		found, err := r.readCheckpoint(ctx, object.Key)
		if err == nil && found != nil && r.checkpointKey(found.Path) == object.Key {
			err = r.bucket.AbortUpload(ctx, store.OpenUpload{Key: r.key(found.Path), ID: found.Upload})
		}
		if err == nil {
			err = r.bucket.Delete(ctx, object.Key)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// dropProbes deletes the objects of probes that were killed. A probe that has
// just begun is another run's.
func (r *run) dropProbes(ctx context.Context) error {
	var failed error
	for object, err := range r.bucket.List(ctx, r.key(record.ProbePrefix)) {
		if err == nil && (object.Key == r.probed || object.Modified.Before(r.started)) {
			err = r.bucket.Delete(ctx, object.Key)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// abandon gives up all unfinished uploads after an error that no later run gets
// past.
func (r *run) abandon(ctx context.Context) {
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	// What stays behind is swept by a later run.
	_ = r.dropCheckpoints(clean)
}
