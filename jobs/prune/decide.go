package prune

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// quiet is how long nothing must have changed in a revision without a manifest:
// a sync that nobody here can see may be at work, from another cluster.
const quiet = 24 * time.Hour

// decide sets the action of each revision. Whatever speaks for a revision
// counts before all that speaks against it.
func decide(revisions []*revision, plan record.PrunePlan, now time.Time) {
	newest := newestFirst(revisions)
	for _, r := range revisions {
		r.Action, r.Reason = action(r, plan, newest[r], now)
	}
}

func action(r *revision, plan record.PrunePlan, rank int, now time.Time) (action, reason string) {
	age := now.Sub(r.Changed)
	switch holder := usedBy(r, plan.References); {
	case holder != "":
		return record.PruneKeep, "used by " + holder
	case r.State == record.StateForeign:
		return record.PruneRefuse, r.why
	case r.State == record.StateComplete && rank < plan.Keep:
		return record.PruneKeep, fmt.Sprintf("among the newest %d of its model", plan.Keep)
	case r.State == record.StateUnfinished && age < quiet:
		return record.PruneKeep, fmt.Sprintf("changed %s ago: a sync may be at work", age.Round(time.Minute))
	case r.State == record.StateUnfinished && rank < plan.Keep:
		// A sync takes the manifest away while it heals: a killed one leaves the
		// only delivery of a model without.
		return record.PruneKeep, fmt.Sprintf("its model has fewer than %d finished revisions: run its sync again", plan.Keep)
	case age.Seconds() < plan.OlderThanSeconds:
		return record.PruneKeep, fmt.Sprintf("changed %s ago", age.Round(time.Minute))
	case len(plan.Unread) > 0 && !plan.EvenIfUnread:
		return record.PruneRefuse, "it may be in use: cannot read " + strings.Join(plan.Unread, ", ")
	case r.State == record.StateUnfinished:
		return record.PruneDelete, "never finished"
	}
	return record.PruneDelete, "not used"
}

// newestFirst gives each complete revision its place among those of its model,
// and the others the place behind them.
func newestFirst(revisions []*revision) map[*revision]int {
	byModel := make(map[string][]*revision)
	for _, r := range revisions {
		if r.State == record.StateComplete {
			byModel[r.group] = append(byModel[r.group], r)
		}
	}
	rank := make(map[*revision]int)
	for _, all := range byModel {
		slices.SortStableFunc(all, func(a, b *revision) int { return b.uploaded.Compare(a.uploaded) })
		for i, r := range all {
			rank[r] = i
		}
	}
	for _, r := range revisions {
		if r.State != record.StateComplete {
			rank[r] = len(byModel[r.group])
		}
	}
	return rank
}

// usedBy returns the first object that refers to a revision: by its commit, or
// by a place at, above or below it.
func usedBy(r *revision, references []record.Reference) string {
	for _, reference := range references {
		if reference.Revision != "" {
			if reference.Revision == r.Revision {
				return reference.Holder
			}
			continue
		}
		if reference.Prefix == "" || below(r.prefix, reference.Prefix) || below(reference.Prefix, r.prefix) {
			return reference.Holder
		}
	}
	return ""
}

// below says whether key is the prefix or lies below it.
func below(key, prefix string) bool { return key == prefix || strings.HasPrefix(key, prefix+"/") }
