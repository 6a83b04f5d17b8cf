package sync

import (
	"context"
	"crypto/rand"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

// open reaches the bucket and looks what is there.
func (r *run) open(ctx context.Context) error {
	name, _, err := r.plan.Bucket()
	if err != nil {
		return err
	}
	r.bucket, err = store.Open(ctx, store.Config{
		Bucket: name, Endpoint: r.plan.S3Endpoint, Region: r.plan.S3Region, KMSKey: r.plan.KMSKey,
		Credentials: r.deps.Credentials, Transport: r.deps.StoreTransport, Attempts: r.deps.Attempts, OnRetry: r.report.storeRetry,
	})
	if err != nil {
		return err
	}
	if err := r.readPrevious(ctx); err != nil {
		return err
	}
	// What a manifest says of the store is believed only where it asks for more:
	// whoever writes is to know, and nothing is taken for right on less evidence
	// because a manifest says that there is no better.
	r.can = record.StoreCapabilities{RefusesWrongSHA256: true, ConditionalPut: true, ReturnsSHA256: true, RefusesWrongPart: true, ListsPartSHA256: true}
	if !r.plan.DryRun && (r.previous == nil || r.previous.StoreCapabilities != r.can) {
		if err := r.probe(ctx); err != nil {
			return err
		}
	}
	return r.survey(ctx)
}

// survey finds out what there is to do, given the manifest that was found.
func (r *run) survey(ctx context.Context) error {
	if r.plan.Flat {
		found, _, err := r.readClaim(ctx)
		if err != nil {
			return err
		}
		if r.unfinished = found != nil; r.unfinished {
			r.left = found.Paths
		}
	}
	r.files = nil
	for _, file := range r.chosen {
		r.files = append(r.files, &item{file: file})
	}
	divide(r.files, r.plan.Workers)
	if err := r.widen(); err != nil {
		return err
	}
	if err := r.checkStanding(ctx); err != nil {
		return err
	}
	if err := r.look(ctx); err != nil {
		return err
	}
	r.announce()
	return nil
}

// probe tries what the store can do, and says in words what it cannot.
func (r *run) probe(ctx context.Context) error {
	unique := rand.Text()
	r.probed = r.key(record.ProbePrefix + unique)
	can, err := r.bucket.Probe(ctx, r.prefix, unique)
	if err != nil {
		return err
	}
	r.can = can
	if !can.RefusesWrongSHA256 {
		r.warn("the store accepts an object whose SHA-256 is wrong: damage on the way to it would go unnoticed until a full verify")
	}
	if !can.ConditionalPut {
		r.warn("the store ignores conditional writes: two syncs of one prefix at the same time are not kept apart")
	}
	if !can.ReturnsSHA256 {
		r.warn("the store does not return SHA-256 checksums: objects already there are recognised by their metadata alone")
	}
	if !can.RefusesWrongPart {
		r.warn("the store accepts a part whose SHA-256 is wrong: damage of a large file on the way to it would go unnoticed until a full verify")
	}
	if !r.resumes() {
		r.warn("the store does not vouch for the parts of an unfinished upload: a large file that is interrupted starts from its beginning")
	}
	return nil
}
