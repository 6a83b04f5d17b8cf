package sync

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/clock"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

const (
	claimVersion = 1
	// claimBeat is how often a claim is renewed; one that was not renewed for
	// claimLapse of them is that of a run that died.
	claimBeat  = 10 * time.Second
	claimLapse = 4
)

// claim says which run may write below a flat prefix. Such a prefix has no
// revision in its name, so that two deliveries can mean the same keys: the
// claim decides between them, wherever they run, as a Lease does between the
// Jobs of one namespace. It also keeps what is to be removed until it is: the
// manifest that listed it goes before the first byte changes.
//
// It is an object that is made and renewed by conditional writes. A run that is
// stopped for longer than the lapse loses it and ends at its next renewal; what
// it sent in between is seen when the manifest is confirmed.
type claim struct {
	Version  int    `json:"version"`
	Model    string `json:"model"`
	Revision string `json:"revision"`
	// Run names the run that holds it, or the Job whose workers share it; ""
	// where it ended before the prefix was complete.
	Run string `json:"run"`
	// Beat grows with each renewal.
	Beat int64 `json:"beat"`
	// Paths are all that this and earlier unfinished deliveries may have left.
	Paths []string `json:"paths"`
}

// errHeld is in the error of a run whose prefix is another one's.
var errHeld = errors.New("another delivery holds this prefix")

func (r *run) heldBy(other claim) error {
	return failure.New(failure.Failed, "wait until it ends and run this one again, or deliver to another prefix",
		"sync %s: %w: %s at %s", r.location(), errHeld, failure.Clean(other.Model), failure.Clean(other.Revision))
}

func (r *run) claimKey() string { return r.key(record.ClaimName) }

// readClaim returns nil where there is none, and the ETag to replace it by.
func (r *run) readClaim(ctx context.Context) (*claim, string, error) {
	object, err := r.bucket.Head(ctx, r.claimKey())
	if err == nil {
		var data []byte
		if data, err = r.object(ctx, r.claimKey(), 0, -1); err == nil {
			var found claim
			if json.Unmarshal(data, &found) != nil || found.Version != claimVersion {
				// Nobody's: what cannot be read binds nobody, and is replaced.
				found = claim{Version: claimVersion}
			}
			return &found, object.ETag, nil
		}
	}
	if store.CauseOf(err) == store.NoObject {
		return nil, "", nil
	}
	return nil, "", err
}

// putClaim writes the claim in place of the one with the given ETag, "" for
// none, and says whether it did.
func (r *run) putClaim(ctx context.Context, ours claim, etag string) (bool, error) {
	data, err := json.Marshal(ours)
	if err != nil {
		return false, err
	}
	options := store.PutOptions{ContentType: "application/json"}
	if r.can.ConditionalPut {
		options.IfAbsent, options.IfMatch = etag == "", etag
	}
	_, err = r.bucket.Put(ctx, r.claimKey(), data, options)
	var refused *store.Error
	if options.IfMatch != "" && errors.As(err, &refused) && refused.Status == http.StatusNotImplemented {
		// The store knows the condition for new objects alone: what was read just
		// now has to do.
		options.IfMatch = ""
		_, err = r.bucket.Put(ctx, r.claimKey(), data, options)
	}
	switch store.CauseOf(err) {
	case store.Condition, store.Conflict, store.NoObject:
		return false, nil
	}
	return err == nil, err
}

// take waits for the claim and writes it. It ends with an error where a run
// that is alive delivers something else; the same delivery is waited for.
func (r *run) take(ctx context.Context) (waited bool, err error) {
	var seen claim
	var since time.Time
	alive := false
	for {
		found, etag, err := r.readClaim(ctx)
		if err != nil {
			return waited, err
		}
		if found == nil || found.Run == "" || found.Run == r.deps.Run || r.lapsed(*found, seen, since) {
			ours := claim{Version: claimVersion, Model: r.repo, Revision: r.commit, Run: r.deps.Run, Beat: 1}
			if found != nil {
				ours.Paths, ours.Beat = found.Paths, found.Beat+1
			}
			done, err := r.putClaim(ctx, ours, etag)
			if err != nil {
				return waited, err
			}
			if done && r.can.ConditionalPut {
				return waited, nil
			}
			if done && r.settled(ctx) {
				return waited, nil
			}
			waited = true
			continue
		}
		if found.Run != seen.Run || found.Beat != seen.Beat {
			alive = found.Run == seen.Run
			seen, since = *found, time.Now()
		}
		if alive && (found.Model != r.repo || found.Revision != r.commit) {
			return waited, r.heldBy(*found)
		}
		if !waited {
			waited = true
			r.report.emit(record.Event{
				Name: EventHeld, Message: fmt.Sprintf("another run is delivering %s at %s to this prefix; this one looks whether it is alive", failure.Clean(found.Model), failure.Clean(found.Revision)),
				Fields: map[string]any{"holder": failure.Clean(found.Run)},
			})
		}
		if err := clock.Sleep(ctx, r.deps.Beat/2); err != nil {
			return waited, err
		}
	}
}

func (r *run) lapsed(found, seen claim, since time.Time) bool {
	return found.Run == seen.Run && found.Beat == seen.Beat && time.Since(since) > claimLapse*r.deps.Beat
}

// settled looks a moment later whether the claim is still this run's. It is what
// can be done where the store ignores conditional writes, and not certain.
func (r *run) settled(ctx context.Context) bool {
	if clock.Sleep(ctx, r.deps.Beat/5) != nil {
		return false
	}
	return r.holds(ctx) == nil
}

// holds returns an error where the claim is not this run's any more.
func (r *run) holds(ctx context.Context) error {
	if !r.plan.Flat {
		return nil
	}
	found, _, err := r.readClaim(ctx)
	if err != nil {
		return err
	}
	if found == nil {
		return failure.New(failure.Failed, "run it again", "sync %s: %w no more, but did while this one stood still", r.location(), errHeld)
	}
	if found.Run != r.deps.Run {
		return r.heldBy(*found)
	}
	return nil
}

// change rewrites this run's claim.
func (r *run) change(ctx context.Context, edit func(*claim)) error {
	r.claiming.Lock()
	defer r.claiming.Unlock()
	found, etag, err := r.readClaim(ctx)
	if err != nil {
		return err
	}
	if found == nil || found.Run != r.deps.Run {
		return r.holds(ctx)
	}
	edit(found)
	found.Beat++
	done, err := r.putClaim(ctx, *found, etag)
	if err == nil && !done {
		// A lost answer to this very write looks like another's.
		err = r.holds(ctx)
	}
	return err
}
