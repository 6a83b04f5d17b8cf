package sync

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// EventRemoved tells what a flat prefix lost because the new delivery lacks it.
const EventRemoved = "removed"

// refresh looks again at a prefix that is held now, if it changed since this run
// looked first, and notes in the claim what the prefix may come to hold.
func (r *run) refresh(ctx context.Context, waited bool) error {
	before := r.manifestETag
	if err := r.readPrevious(ctx); err != nil {
		return err
	}
	if waited || before != r.manifestETag {
		if err := r.survey(ctx); err != nil {
			return err
		}
	}
	return r.change(ctx, func(c *claim) {
		paths := slices.Concat(c.Paths, r.formerPaths(nil))
		for _, item := range r.files {
			paths = append(paths, item.file.Path)
		}
		slices.Sort(paths)
		c.Paths = slices.Compact(paths)
		r.left = c.Paths
	})
}

// removeFormer deletes what former deliveries to a flat prefix left and this one
// lacks: vLLM would load such a file as a shard of the new revision.
func (r *run) removeFormer(ctx context.Context) error {
	var removed []string
	for _, name := range r.formerPaths(r.left) {
		if err := r.bucket.Delete(ctx, r.key(name)); err != nil {
			return err
		}
		if _, there := r.sizes[r.key(name)]; there {
			removed = append(removed, name)
		}
	}
	if len(removed) > 0 {
		r.report.emit(record.Event{
			Name: EventRemoved, Message: fmt.Sprintf("removed %d files that the former delivery had and this one lacks: %s", len(removed), strings.Join(removed, ", ")),
			Fields: map[string]any{"files": len(removed), "paths": removed},
		})
	}
	return nil
}

// formerPaths are the paths that the delivery removes: what earlier ones left or
// list, and this one lacks.
func (r *run) formerPaths(left []string) []string {
	planned := map[string]bool{}
	for _, item := range r.files {
		planned[item.file.Path] = true
	}
	if !r.plan.Flat {
		return nil
	}
	all := slices.Clone(left)
	if r.previous != nil && (r.previous.Revision != r.commit || r.previous.ModelID != r.repo) {
		for _, file := range r.previous.Files {
			all = append(all, file.Path)
		}
		if r.previous.Signature != nil {
			all = append(all, record.SignatureName)
		}
	}
	slices.Sort(all)
	signed := r.previous != nil && r.previous.Revision == r.commit && r.previous.Signature != nil
	return slices.DeleteFunc(slices.Compact(all), func(name string) bool {
		if name == record.SignatureName && signed {
			return true
		}
		return planned[name] || name != record.SignatureName && checkName(r.prefix, name) != nil
	})
}
