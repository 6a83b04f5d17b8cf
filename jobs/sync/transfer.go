package sync

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/hub"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

// fileAttempts is how often a file is read anew when its bytes were wrong.
const fileAttempts = 3

// reasonUploaded marks the items that this run uploaded.
const reasonUploaded = "uploaded"

// transfer uploads what is not there. Indexes go first: a model that lacks a
// shard is known before its weights cost anything.
func (r *run) transfer(ctx context.Context) error {
	stop := r.report.start(ctx, r.deps.ProgressEvery, r.counters)
	defer stop()
	var rest []*item
	for _, item := range r.files {
		if isIndex(item.file.Path) {
			if err := r.index(ctx, item); err != nil {
				return err
			}
		}
		if !item.present {
			rest = append(rest, item)
		}
	}
	// Large files first, so that none of them is left to run alone at the end.
	slices.SortStableFunc(rest, func(a, b *item) int { return cmp.Compare(b.file.Size, a.file.Size) })
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(r.plan.Parallel)
	for _, item := range rest {
		group.Go(func() error { return r.upload(groupCtx, item) })
	}
	for _, item := range r.files {
		if item.present && r.previous == nil && strings.HasSuffix(item.file.Path, ".safetensors") {
			group.Go(func() error { return r.inspect(groupCtx, item) })
		}
	}
	return group.Wait()
}

// index checks that all shards that an index names are part of the plan.
func (r *run) index(ctx context.Context, item *item) error {
	data, err := r.contents(ctx, item)
	if err != nil {
		return err
	}
	planned := make(map[string]bool, len(r.files))
	for _, other := range r.files {
		planned[other.file.Path] = true
	}
	missing, err := missingShards(item.file.Path, data, planned)
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("index %s names %s, which the plan lacks", item.file.Path, strings.Join(missing[:min(3, len(missing))], ", "))
		if len(missing) > 3 {
			err = fmt.Errorf("%w (and %d more)", err, len(missing)-3)
		}
	}
	if err == nil {
		return nil
	}
	if r.plan.AllowIncompleteIndex {
		r.warn(err.Error())
		return nil
	}
	return failure.New(failure.Usage, "include the missing files, or accept it with --allow-incomplete-index", "check %s: %w", r.repo, err)
}

// contents is the verified content of a small file, from the store or the Hub.
func (r *run) contents(ctx context.Context, item *item) ([]byte, error) {
	if item.present {
		return r.object(ctx, r.key(item.file.Path), 0, -1)
	}
	if item.file.Size > r.memory.unit {
		return nil, fmt.Errorf("check %s: index %s has %d bytes", r.repo, item.file.Path, item.file.Size)
	}
	var data []byte
	err := r.again(ctx, item, func(source *hub.Source) error {
		return r.whole(ctx, item, source, func(body []byte) { data = bytes.Clone(body) })
	})
	if err != nil {
		return nil, err
	}
	r.report.file(item)
	return data, nil
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
			return r.whole(ctx, item, source, func([]byte) {})
		}
		return r.stream(ctx, item, source)
	})
	if err != nil {
		return err
	}
	r.report.file(item)
	return nil
}

// again repeats a file whose bytes were not the Hub's: a cache on the way can
// be wrong once (huggingface_hub#3643). What it brought is not counted.
func (r *run) again(ctx context.Context, item *item, attempt func(*hub.Source) error) error {
	source := r.hub.Open(r.repo, r.commit, item.file)
	for n := 1; ; n++ {
		err := attempt(source)
		var wrong *mismatch
		if err == nil || !errors.As(err, &wrong) || n == fileAttempts {
			return err
		}
		r.report.wrong(wrong, n)
		source.Forget()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// whole transfers a file that fits into one buffer. keep sees the verified
// bytes before the buffer is used again.
func (r *run) whole(ctx context.Context, item *item, source *hub.Source, keep func([]byte)) error {
	file := item.file
	buffer, err := r.memory.take(ctx, file.Size)
	if err != nil {
		return err
	}
	defer r.memory.give(buffer)
	if err := r.fetch(ctx, source, 0, buffer); err != nil {
		return err
	}
	check := newVerifier(file)
	check.write(buffer)
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
	keep(buffer)
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
	if err := source.Read(ctx, offset, buffer); err != nil {
		return err
	}
	r.report.transferred(int64(len(buffer)))
	return nil
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
