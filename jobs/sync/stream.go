package sync

import (
	"context"

	"golang.org/x/sync/errgroup"

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
	file := item.file
	key := r.key(file.Path)
	options := store.PutOptions{ContentType: contentType(file.Path), Metadata: metadataOf(file)}
	upload, err := r.bucket.CreateUpload(ctx, key, options)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			// The reason why it failed matters more than what this returns;
			// what stays behind is swept by the next run.
			_ = upload.Abort(ctx)
		}
	}()
	check := newVerifier(file)
	if err := r.parts(ctx, file, source, upload, check); err != nil {
		r.report.transferred(-check.size)
		// Another run finished the same file and swept this upload.
		if store.CauseOf(err) == store.NoObject && file.SHA256 != "" && r.theirs(ctx, item, key, file.SHA256) {
			return nil
		}
		return err
	}
	sum, err := check.check()
	if err != nil {
		r.report.transferred(-check.size)
		return err
	}
	object, err := upload.Complete(ctx, file.Size, false)
	if err != nil {
		// The answer to an earlier Complete was lost, or another run finished
		// the same file and swept this upload, at which some stores fail
		// (versitygw: InternalError). What counts is the object.
		if !r.theirs(ctx, item, key, sum) {
			return err
		}
		// Where it is not gone yet, this upload is of no use.
		_ = upload.Abort(ctx)
		return nil
	}
	item.uploaded(sum, object)
	return nil
}

// theirs says whether the object is there with the digest sum although this
// run did not see it completed, and counts the file as uploaded then.
func (r *run) theirs(ctx context.Context, item *item, key, sum string) bool {
	found, err := r.bucket.Head(ctx, key)
	if err != nil || !isFile(item, sum, found, r.can) {
		return false
	}
	item.uploaded(sum, found)
	return true
}

// parts moves all parts of a file and feeds them to check in order.
func (r *run) parts(ctx context.Context, file hub.File, source *hub.Source, upload *store.Upload, check *verifier) error {
	size := store.PartSize(file.Size)
	group, groupCtx := errgroup.WithContext(ctx)
	turn := make(chan struct{})
	close(turn)
	number := 0
	for offset := int64(0); offset < file.Size; offset += size {
		buffer, err := r.memory.take(groupCtx, min(size, file.Size-offset))
		if err != nil {
			break
		}
		number++
		part, mine, next := number, turn, make(chan struct{})
		turn = next
		group.Go(func() error {
			defer r.memory.give(buffer)
			if err := r.fetch(groupCtx, source, offset, buffer); err != nil {
				return err
			}
			sent := make(chan error, 1)
			go func() { sent <- r.send(groupCtx, upload, part, buffer) }()
			select {
			case <-mine:
				check.write(buffer)
				close(next)
			case <-groupCtx.Done():
			}
			// The buffer may be used again only when nobody reads it.
			return <-sent
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

func (r *run) send(ctx context.Context, upload *store.Upload, part int, buffer []byte) error {
	if err := r.sends.Acquire(ctx, 1); err != nil {
		return err
	}
	defer r.sends.Release(1)
	return upload.Part(ctx, part, buffer)
}
