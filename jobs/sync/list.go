package sync

import (
	"context"
	"fmt"
	"path"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/hub"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

// list resolves the revision and chooses its files.
func (r *run) list(ctx context.Context) error {
	revision, err := r.hub.Resolve(ctx, r.plan.Repo, r.plan.Revision)
	if err != nil {
		return err
	}
	r.repo, r.commit = revision.Repo, revision.Commit
	if record.IsCommit(r.plan.Revision) && r.plan.Revision != r.commit {
		return failure.New(failure.Failed, "", "resolve %s: asked for commit %s, the Hub answers with %s", r.repo, r.plan.Revision, r.commit)
	}
	if r.prefix, err = r.plan.Prefix(r.commit); err != nil {
		return err
	}
	r.noteName()
	if last := path.Base(r.prefix); r.plan.Flat && record.IsCommit(last) && last != r.commit {
		return failure.New(failure.Usage, "leave out --flat, or choose a prefix that does not end in a commit",
			"deliver %s at %s to %s: the prefix is the immutable one of another revision", r.repo, r.commit, r.plan.Destination)
	}
	listed, err := r.hub.List(ctx, r.repo, r.commit)
	if err != nil {
		return err
	}
	chosen, skipped, err := choose(listed, r.plan)
	if err != nil {
		return failure.New(failure.Usage, "", "choose files: %w", err)
	}
	if len(chosen) == 0 {
		return failure.New(failure.Usage, "the patterns and the preset leave nothing of this revision; try --dry-run without them",
			"choose files: none of the %d files of %s at %s is left", len(listed), r.repo, r.commit)
	}
	if err := checkNames(r.prefix, chosen); err != nil {
		return failure.New(failure.Usage, "leave the file out with --exclude", "plan %s: %w", r.repo, err)
	}
	if !r.plan.AllowUnverified {
		if err := checkDigests(chosen); err != nil {
			return failure.New(failure.Usage, "use an endpoint that lists lfs.oid, or accept it with --allow-unverified", "plan %s: %w", r.repo, err)
		}
	}
	r.chosen, r.omitted, r.listed = chosen, skipped, listed
	return r.budget(chosen)
}

// budget divides the memory into buffers that hold any part of these files.
func (r *run) budget(files []hub.File) error {
	var part int64 = 1
	for _, file := range files {
		part = max(part, min(file.Size, store.PartSize(file.Size)))
	}
	if part > r.plan.MemoryBytes {
		return failure.New(failure.Usage, fmt.Sprintf("give it at least --memory %d", part),
			"plan %s: a memory budget of %d bytes does not hold one part of %d bytes", r.repo, r.plan.MemoryBytes, part)
	}
	r.memory = newMemory(r.plan.MemoryBytes, part)
	return nil
}
