package sync

import "fmt"

// noteName says where the Hub has another name for the repository than the
// plan: it was renamed, or written otherwise. The prefix keeps the plan's, so
// that a second run finds what the first brought, and so does whoever looks for
// running syncs by their plans.
func (r *run) noteName() {
	if r.repo == r.plan.Repo {
		return
	}
	where := ""
	if !r.plan.Flat {
		where = fmt.Sprintf(", while the prefix keeps the name %s; give %s to deliver under that name", r.plan.Repo, r.repo)
	}
	r.warn(fmt.Sprintf("the Hub's name of %s is %s: the manifest says so%s", r.plan.Repo, r.repo, where))
}
