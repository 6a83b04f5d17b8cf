package sync

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/kubectl-inference/kubectl-inference/jobs/clock"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/hub"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

// Several workers share a plan without a word between them: each divides the
// same list in the same way and brings over its part. The first alone removes a
// manifest that became false and writes the new one, once it has seen every
// object in the store; so a worker that dies, or is late, is only waited for.

const (
	// defaultPatience is how long the first worker waits in vain for the others.
	// They may have no node to run on, or have ended before an object of theirs
	// was damaged.
	defaultPatience = 10 * time.Minute
	// slowest is the rate in bytes a second below which a file counts as stuck.
	slowest = 16 << 20
	// looks is how often the store is looked at within the patience, and
	// longestLook the most time between two looks.
	looks       = 120
	longestLook = 5 * time.Second
)

// divide gives each file to a worker: the largest first, each to the one with
// the fewest bytes so far. It depends on nothing but the list, so that all
// workers, and a worker that replaces another, come to the same.
func divide(items []*item, workers int) {
	if workers <= 1 {
		return
	}
	order := slices.Clone(items)
	slices.SortFunc(order, func(a, b *item) int {
		return cmp.Or(cmp.Compare(b.file.Size, a.file.Size), strings.Compare(a.file.Path, b.file.Path))
	})
	load := make([]int64, workers)
	for _, item := range order {
		to := 0
		if recognised(item.file) && !isIndex(item.file.Path) {
			for worker, bytes := range load {
				if bytes < load[to] {
					to = worker
				}
			}
		}
		item.worker = to
		load[to] += item.file.Size
	}
}

// recognised says whether a worker that did not upload a file can tell that its
// object is right. Where not, the first worker brings it over itself, as it does
// the indexes, which it has read already.
func recognised(file hub.File) bool {
	source := sourceDigest(file)
	return source != nil && (source.Algorithm == record.DigestSHA256 || file.Size <= store.PartSize(file.Size))
}

// mine says whether this worker brings a file over.
func (r *run) mine(item *item) bool { return item.worker == r.deps.Index }

// share is what this worker has to bring over.
func (r *run) share() record.FileCount {
	var count record.FileCount
	for _, item := range r.files {
		if r.mine(item) && !item.present {
			count.Add(item.file.Size)
		}
	}
	return count
}

// assist is the run of a worker that is not the first.
func (r *run) assist(ctx context.Context) error {
	done, err := r.cleared(ctx)
	if err != nil {
		return err
	}
	if done {
		return r.already(ctx, r.complete())
	}
	if r.probed == "" {
		if err := r.probe(ctx); err != nil {
			return err
		}
	}
	for round := 0; ; round++ {
		if err := r.transfer(ctx); err != nil {
			return err
		}
		// What is changed after this look, the first worker brings over.
		if changed, err := r.confirm(ctx); err != nil || len(changed) == 0 || round == confirmRounds {
			if err != nil {
				return err
			}
			break
		}
	}
	r.result.Worker = fmt.Sprintf("%d of %d", r.deps.Index+1, r.plan.Workers)
	r.finish(nil)
	return nil
}

// cleared waits until this worker may write: the first one holds a flat prefix,
// and has removed a manifest that promises what is about to change. done says
// that the delivery is complete without this worker.
func (r *run) cleared(ctx context.Context) (done bool, err error) {
	since := r.deps.Now()
	for found := r.manifestETag; ; {
		free, there := !r.plan.Flat, ""
		if !free {
			held, _, err := r.readClaim(ctx)
			if err != nil {
				return false, err
			}
			free = held != nil && held.Run == r.deps.Run
		}
		object, err := r.bucket.Head(ctx, r.key(record.ManifestName))
		switch {
		case err == nil:
			there = object.ETag
		case store.CauseOf(err) != store.NoObject:
			return false, err
		}
		switch {
		case there == "" && free:
			return false, nil
		case there != "" && there != found:
			// Written meanwhile: by the first worker, or by another delivery.
			found = there
			if err := r.readPrevious(ctx); err != nil {
				return false, err
			}
			if err := r.survey(ctx); err != nil {
				return false, err
			}
			if r.complete() != nil {
				return true, nil
			}
		case free && r.previous != nil && r.previous.Revision == r.commit && r.deps.Now().Sub(since) > r.patience():
			// The first worker found all right before this one saw the damage. To
			// put right what the manifest promises makes it no falser.
			return false, nil
		}
		if err := r.pause(ctx); err != nil {
			return false, err
		}
	}
}

// gather waits until the files of the other workers are there. The first worker
// brings over itself what does not come.
func (r *run) gather(ctx context.Context) error {
	if r.plan.Workers <= 1 {
		return nil
	}
	before, since, told, seen := -1, r.deps.Now(), time.Time{}, ""
	for {
		missing, err := r.missing(ctx)
		if err != nil || len(missing) == 0 {
			return err
		}
		if seen, err = r.unmask(ctx, seen); err != nil {
			return err
		}
		now := r.deps.Now()
		if len(missing) != before {
			before, since = len(missing), now
		}
		var bytes, largest int64
		for _, item := range missing {
			bytes += item.file.Size
			largest = max(largest, item.file.Size)
		}
		if now.Sub(since) > r.patience()+time.Duration(float64(largest)/slowest*float64(time.Second)) {
			r.warn(fmt.Sprintf("no file of the other workers has arrived for %s: this one brings over the %d that lack", now.Sub(since).Round(time.Second), len(missing)))
			for _, item := range missing {
				item.worker = r.deps.Index
			}
			return r.transfer(ctx)
		}
		if now.Sub(told) >= r.deps.ProgressEvery {
			told = now
			r.report.emit(record.Event{
				Name: EventWaiting, Message: fmt.Sprintf("waiting for the other workers: %d files, %s to come", len(missing), humanize.IBytes(uint64(bytes))),
				Fields: map[string]any{"files": len(missing), "bytes": bytes},
			})
		}
		if err := r.pause(ctx); err != nil {
			return err
		}
	}
}

// unmask removes a manifest that was there at the last look and still is while
// files lack: it is false, and a worker that was replaced waits for it to go.
func (r *run) unmask(ctx context.Context, seen string) (now string, err error) {
	object, err := r.bucket.Head(ctx, r.key(record.ManifestName))
	if store.CauseOf(err) == store.NoObject {
		return "", nil
	}
	if err == nil && object.ETag == seen {
		err = r.bucket.Delete(ctx, r.key(record.ManifestName))
	}
	return object.ETag, err
}

// missing returns the files of the plan that are not in the store yet.
func (r *run) missing(ctx context.Context) ([]*item, error) {
	sizes := make(map[string]int64)
	for object, err := range r.bucket.List(ctx, strings.TrimPrefix(r.prefix+"/", "/")) {
		if err != nil {
			return nil, err
		}
		sizes[object.Key] = object.Size
	}
	var missing []*item
	for _, item := range r.files {
		if item.present {
			continue
		}
		if size, found := sizes[r.key(item.file.Path)]; found && size == item.file.Size {
			if err := r.compare(ctx, item); err != nil {
				return nil, err
			}
		}
		if !item.present {
			missing = append(missing, item)
		}
	}
	return missing, nil
}

func (r *run) patience() time.Duration { return cmp.Or(r.deps.Patience, defaultPatience) }

// pause sleeps until it is time to look at the store again.
func (r *run) pause(ctx context.Context) error {
	return clock.Sleep(ctx, min(longestLook, r.patience()/looks))
}
