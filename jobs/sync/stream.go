package sync

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/hub"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

// stream transfers a large file in parts. Ranges arrive in parallel and in any
// order; each is uploaded while its turn comes to be hashed, since both only
// read the buffer. The object is completed once the digest over all parts, in
// order, is the Hub's; otherwise the parts are given up.
//
// Buffers are taken in the order of the parts. So whatever part is next to be
// hashed already has its buffer, and files that share one budget cannot wait
// for each other in a circle.
func (r *run) stream(ctx context.Context, item *item, source *hub.Source) (err error) {
	p, err := r.begin(ctx, item)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			r.report.transferred(-p.check.size)
			r.leave(ctx, p, err)
			return
		}
		if p.whole == "" || !r.can.ReturnsSHA256 {
			r.forget(ctx, item.file.Path)
		}
	}()
	if err := r.parts(ctx, source, p); err != nil {
		err = asLost(err)
		// Another run finished the same file and swept this upload.
		if isLost(err) && item.file.SHA256 != "" && r.theirs(ctx, item, item.file.SHA256, "") {
			return nil
		}
		return err
	}
	sum, err := p.check.check()
	if err != nil {
		return err
	}
	if r.resumes() && r.can.ReturnsSHA256 {
		// Before, so that a run that is killed in between leaves it too.
		p.whole = sum
		r.save(ctx, p)
	}
	object, err := p.upload.Complete(ctx, item.file.Size, false)
	if err != nil {
		// The answer to an earlier Complete was lost, or another run finished
		// the same file and swept this upload, at which some stores fail
		// (versitygw: InternalError). What counts is the object.
		if !r.theirs(ctx, item, sum, p.upload.Composite(store.Parts(item.file.Size))) {
			p.whole = ""
			return asLost(err)
		}
		// Where it is not gone yet, this upload is of no use.
		_ = p.upload.Abort(ctx)
		return nil
	}
	item.uploaded(sum, object)
	return nil
}

// theirs says whether the object is there with the digest sum although this
// run did not see it completed, and counts the file as uploaded then. checksum
// is the one that the store would give to this run's parts.
func (r *run) theirs(ctx context.Context, item *item, sum, checksum string) bool {
	item.done = record.ManifestFile{SHA256: sum, S3: &record.ManifestObject{ChecksumSHA256: checksum}}
	if err := r.compare(ctx, item); err != nil || !item.present {
		return false
	}
	item.reason = reasonUploaded
	return true
}

// parts moves the parts that are not done and feeds them to the hash in order.
func (r *run) parts(ctx context.Context, source *hub.Source, p *partial) error {
	file, size := p.file, store.PartSize(p.file.Size)
	group, groupCtx := errgroup.WithContext(ctx)
	turn := make(chan struct{})
	close(turn)
	for offset := p.check.size; offset < file.Size; offset += size {
		buffer, err := r.memory.take(groupCtx, min(size, file.Size-offset))
		if err != nil {
			break
		}
		part, mine, next := int(offset/size)+1, turn, make(chan struct{})
		turn = next
		group.Go(func() error {
			defer r.memory.give(buffer)
			if err := r.fetch(groupCtx, source, offset, buffer); err != nil {
				return err
			}
			sent := make(chan error, 1)
			go func() { sent <- r.send(groupCtx, p, part, buffer) }()
			select {
			case <-mine:
				p.check.write(buffer)
				r.report.transferred(int64(len(buffer)))
				p.ledger.hash(part, p.check.state())
				close(next)
			case <-groupCtx.Done():
			}
			// The buffer may be used again only when nobody reads it.
			if err := <-sent; err != nil {
				return err
			}
			p.ledger.send(part, p.upload.PartSHA256(part))
			r.saveIfDue(groupCtx, p)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (r *run) send(ctx context.Context, p *partial, part int, buffer []byte) error {
	if p.holds(part, buffer) {
		return nil
	}
	if err := r.sends.Acquire(ctx, 1); err != nil {
		return err
	}
	defer r.sends.Release(1)
	return p.upload.Part(ctx, part, buffer)
}
