package sync

import (
	"context"
	"path"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/hub"
	"github.com/kubectl-inference/kubectl-inference/jobs/signing"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

// Run carries out a plan. Its error is fit for a user: it is a failure.Error
// whose kind says whether another try can help (Failed, Unreachable) or not.
func Run(ctx context.Context, plan record.SyncPlan, deps Deps) (record.SyncResult, error) {
	if err := plan.Validate(); err != nil {
		return record.SyncResult{}, err
	}
	r, err := newRun(plan, deps)
	if err != nil {
		return record.SyncResult{}, explain(err, plan, deps.InJob)
	}
	if err := r.run(ctx); err != nil {
		return record.SyncResult{}, explain(err, plan, deps.InJob)
	}
	return r.result, nil
}

// run is the state of one sync.
type run struct {
	plan   record.SyncPlan
	deps   Deps
	hub    *hub.Client
	bucket *store.Bucket
	report *reporter

	commit string
	repo   string
	prefix string
	can    record.StoreCapabilities
	// previous is the manifest found in the prefix, nil where there is none
	// that can be trusted; stale says that some manifest is there.
	previous *record.Manifest
	stale    bool
	// manifestETag is that of any manifest found, "" for none.
	manifestETag string
	// listed are the files of the revision; chosen are those of the plan, and
	// omitted the rest. files are those of the delivery, skipped the rest, see widen.
	listed, chosen []hub.File
	omitted        []record.ManifestSkipped
	files          []*item
	skipped        []record.ManifestSkipped
	// sizes are those of the objects that were there, by key.
	sizes map[string]int64
	// unfinished says that a flat prefix has a claim, left what it may hold.
	unfinished bool
	left       []string
	claiming   sync.Mutex
	// work is what this worker has to bring over.
	work record.FileCount

	memory  *memory
	fetches *semaphore.Weighted
	sends   *semaphore.Weighted

	// signer is nil where nobody asked for a signature.
	signer *signing.Signer
	// probed is the key of this run's probe.
	probed string
	// checkpoints are the keys of those found in the store.
	checkpoints  map[string]bool
	noCheckpoint sync.Once

	started time.Time
	// mu guards result where files are at work.
	mu     sync.Mutex
	result record.SyncResult
}

// item is one file of the plan and what is known about it.
type item struct {
	file hub.File
	// present says that the right object is there, reason why it is not.
	present bool
	reason  string
	// worker is whose part the file is.
	worker int
	// content is of a file that had to be read before its upload.
	content []byte
	// done is the manifest's line, once the object is.
	done record.ManifestFile
}

func (r *run) run(ctx context.Context) error {
	if err := r.prepareSigning(); err != nil {
		return err
	}
	if err := r.list(ctx); err != nil {
		return err
	}
	defer boundGarbage(r.plan.MemoryBytes, len(r.files))()
	if err := r.checkSignable(); err != nil {
		return err
	}
	release, err := r.hold(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := r.open(ctx); err != nil {
		return err
	}
	err = r.deliver(ctx)
	if err != nil && !r.plan.DryRun && ctx.Err() == nil && permanent(explain(err, r.plan, r.deps.InJob)) {
		r.abandon(ctx)
	}
	return err
}

// deliver does what is left to do, which may be nothing.
func (r *run) deliver(ctx context.Context) error {
	manifest := r.complete()
	switch {
	case manifest != nil && !r.touches():
		return r.already(ctx, manifest)
	case r.deps.Index > 0:
		// The first worker speaks for all.
		return r.assist(ctx)
	}
	if err := r.check(ctx); err != nil {
		return err
	}
	if r.plan.DryRun {
		r.finish(nil)
		return nil
	}
	if r.probed == "" {
		if err := r.probe(ctx); err != nil {
			return err
		}
	}
	return r.claimed(ctx, r.carryOut)
}

// touches says whether a flat prefix that is complete is written to all the
// same: to end what an unfinished delivery left, or to be signed.
func (r *run) touches() bool {
	return r.plan.Flat && !r.plan.DryRun && r.deps.Index == 0 && (r.unfinished || r.signer != nil)
}

// already is the end of a run that found its prefix complete.
func (r *run) already(ctx context.Context, manifest *record.Manifest) error {
	r.result.AlreadyComplete = true
	if err := r.signComplete(ctx, manifest); err != nil {
		return err
	}
	if !r.plan.DryRun && r.deps.Index == 0 {
		// The run that completed it may have been killed before it swept.
		r.sweep(ctx)
	}
	r.finish(manifest)
	return nil
}

// carryOut brings what is missing and commits.
func (r *run) carryOut(ctx context.Context) error {
	if manifest := r.complete(); manifest != nil {
		if err := r.removeFormer(ctx); err != nil {
			return err
		}
		return r.already(ctx, manifest)
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.transfer(ctx); err != nil {
		return err
	}
	if err := r.gather(ctx); err != nil {
		return err
	}
	manifest, err := r.promise(ctx)
	if err != nil {
		return err
	}
	r.sweep(ctx)
	r.finish(manifest)
	return nil
}

// prepare makes the prefix ready for writing. A manifest that promises what is
// about to change goes first, so that a reader never finds a false promise.
func (r *run) prepare(ctx context.Context) error {
	if r.stale {
		if err := r.bucket.Delete(ctx, r.key(record.ManifestName)); err != nil {
			return err
		}
	}
	return r.removeFormer(ctx)
}

func (r *run) key(name string) string { return path.Join(r.prefix, name) }

func (r *run) warn(text string) {
	r.mu.Lock()
	r.result.Warnings = append(r.result.Warnings, text)
	r.mu.Unlock()
	r.report.emit(record.Event{Level: record.Warning, Name: "warning", Message: text})
}

// location is the prefix as a URL.
func (r *run) location() string { return "s3://" + path.Join(r.bucket.Name(), r.prefix) }
