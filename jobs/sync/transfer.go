package sync

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/hub"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

// fileAttempts is how often a file is read anew when its bytes were wrong.
const fileAttempts = 3

// reasonUploaded marks the items that this run uploaded.
const reasonUploaded = "uploaded"

// transfer uploads what is not there and is this worker's.
func (r *run) transfer(ctx context.Context) error {
	share := r.share()
	r.work.Files, r.work.Bytes = r.work.Files+share.Files, r.work.Bytes+share.Bytes
	stop := r.report.start(ctx, r.deps.ProgressEvery, r.counters)
	defer stop()
	var rest, found []*item
	for _, item := range r.files {
		switch {
		case !r.mine(item):
		case !item.present:
			rest = append(rest, item)
		case item.reason == "" && r.previous == nil && strings.HasSuffix(item.file.Path, ".safetensors"):
			found = append(found, item)
		}
	}
	// Large files first, so that none of them is left to run alone at the end.
	slices.SortStableFunc(rest, func(a, b *item) int { return cmp.Compare(b.file.Size, a.file.Size) })
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(r.plan.Parallel)
	for _, item := range rest {
		group.Go(func() error { return r.upload(groupCtx, item) })
	}
	for _, item := range found {
		group.Go(func() error { return r.inspect(groupCtx, item) })
	}
	return group.Wait()
}

// inspect checks the header of weights that are in the store already and that
// no manifest vouches for.
func (r *run) inspect(ctx context.Context, item *item) error {
	var head header
	for len(head.start) < head.want() && int64(len(head.start)) < item.file.Size {
		from := int64(len(head.start))
		data, err := r.object(ctx, r.key(item.file.Path), from, min(int64(head.want()), item.file.Size)-from)
		if err != nil {
			return err
		}
		if len(data) == 0 {
			break
		}
		head.write(data)
	}
	if err := head.check(item.file.Size); err != nil {
		return &unsound{path: item.file.Path, err: err}
	}
	return nil
}

// upload brings one file over.
func (r *run) upload(ctx context.Context, item *item) error {
	err := r.again(ctx, item, func(source *hub.Source) error {
		if item.file.Size <= store.PartSize(item.file.Size) {
			return r.whole(ctx, item, source)
		}
		return r.stream(ctx, item, source)
	})
	if err != nil {
		return err
	}
	r.report.file(item)
	return nil
}

// again repeats a file whose bytes were not the Hub's, for a cache on the way
// can be wrong once (huggingface_hub#3643), or whose upload another run took
// away. What it brought is not counted.
func (r *run) again(ctx context.Context, item *item, attempt func(*hub.Source) error) error {
	source := r.hub.Open(r.repo, r.commit, item.file)
	for n := 1; ; n++ {
		err := attempt(source)
		var wrong *mismatch
		if err == nil || !errors.As(err, &wrong) && !isLost(err) || n == fileAttempts {
			return err
		}
		r.report.again(item.file.Path, err, n)
		source.Forget()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// whole transfers a file that fits into one buffer.
func (r *run) whole(ctx context.Context, item *item, source *hub.Source) error {
	file := item.file
	buffer, err := r.memory.take(ctx, file.Size)
	if err != nil {
		return err
	}
	defer r.memory.give(buffer)
	if item.content != nil {
		copy(buffer, item.content)
	} else if err := r.fetch(ctx, source, 0, buffer); err != nil {
		return err
	}
	check := newVerifier(file)
	check.write(buffer)
	r.report.transferred(file.Size)
	sum, err := check.check()
	if err != nil {
		r.report.transferred(-file.Size)
		return err
	}
	metadata := metadataOf(file)
	metadata[metaSHA256] = sum
	if err := r.sends.Acquire(ctx, 1); err != nil {
		return err
	}
	defer r.sends.Release(1)
	object, err := r.bucket.Put(ctx, r.key(file.Path), buffer, store.PutOptions{ContentType: contentType(file.Path), Metadata: metadata})
	if err != nil {
		return err
	}
	item.uploaded(sum, object)
	return nil
}

// fetch reads a range while it holds one of the run's workers.
func (r *run) fetch(ctx context.Context, source *hub.Source, offset int64, buffer []byte) error {
	if len(buffer) == 0 {
		return nil
	}
	if err := r.fetches.Acquire(ctx, 1); err != nil {
		return err
	}
	defer r.fetches.Release(1)
	return source.Read(ctx, offset, buffer)
}

// metadataOf is what is known of a file before its bytes are.
func metadataOf(file hub.File) map[string]string {
	metadata := make(map[string]string)
	switch source := sourceDigest(file); {
	case source == nil:
	case source.Algorithm == record.DigestSHA256:
		metadata[metaSHA256] = source.Value
	default:
		metadata[metaGitSHA1] = source.Value
	}
	return metadata
}

func contentType(name string) string {
	switch {
	case strings.HasSuffix(name, ".json"):
		return "application/json"
	case strings.HasSuffix(name, ".txt"), strings.HasSuffix(name, ".md"), strings.HasSuffix(name, ".jinja"), strings.HasSuffix(name, ".py"):
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

func (i *item) uploaded(sum string, object store.Object) {
	i.present, i.reason = true, reasonUploaded
	i.done = line(i.file, sum, object)
}
