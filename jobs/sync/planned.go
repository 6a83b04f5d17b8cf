package sync

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/hub"
)

// check finds out before the first write, and in a dry run too, what would
// stop the transfer later: files that may not be read, and an index that names
// shards which are not part of the plan.
func (r *run) check(ctx context.Context) error {
	for _, item := range r.files {
		if !item.present && item.file.Size > 0 {
			// The listing of a gated model is public, its files are not.
			if err := r.hub.Open(r.repo, r.commit, item.file).Probe(ctx); err != nil {
				return err
			}
			break
		}
	}
	planned := make(map[string]bool, len(r.files))
	for _, item := range r.files {
		planned[item.file.Path] = true
	}
	for _, item := range r.files {
		if isIndex(item.file.Path) {
			if err := r.index(ctx, item, planned); err != nil {
				return err
			}
		}
	}
	return nil
}

// index checks that all shards that an index names are part of the plan.
func (r *run) index(ctx context.Context, item *item, planned map[string]bool) error {
	data, err := r.contents(ctx, item)
	if err != nil {
		return err
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
// What came from the Hub is kept for its upload.
func (r *run) contents(ctx context.Context, item *item) ([]byte, error) {
	if item.present {
		return r.object(ctx, r.key(item.file.Path), 0, -1)
	}
	if item.file.Size > r.memory.unit {
		return nil, fmt.Errorf("check %s: index %s has %d bytes", r.repo, item.file.Path, item.file.Size)
	}
	buffer, err := r.memory.take(ctx, item.file.Size)
	if err != nil {
		return nil, err
	}
	defer r.memory.give(buffer)
	err = r.again(ctx, item, func(source *hub.Source) error {
		if err := r.fetch(ctx, source, 0, buffer); err != nil {
			return err
		}
		check := newVerifier(item.file)
		check.write(buffer)
		_, err := check.check()
		if err != nil {
			r.report.transferred(-item.file.Size)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	item.content = bytes.Clone(buffer)
	return item.content, nil
}
