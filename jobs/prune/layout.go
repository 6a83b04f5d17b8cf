package prune

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

// layout is what a listing says about where deliveries are. A folder that is
// named after a commit can be one of a model's own: repositories hold whole
// caches of the Hub, snapshots/COMMIT/ and all. So the revisions are known only
// when everything was listed. Folders are kept, not keys, of which there can be
// millions.
type layout struct {
	base    string
	folders map[string]*folder
	// roots are the prefixes that a sync writes or wrote a model to; manifests
	// those of them that have a manifest.
	roots, manifests map[string]bool
	// above are the prefixes that a root lies in, set when all was listed.
	above map[string]bool
}

// folder is what lies in a place.
type folder struct {
	record.FileCount
	changed time.Time
}

func newLayout(base string) *layout {
	return &layout{base: base, folders: make(map[string]*folder), roots: make(map[string]bool), manifests: make(map[string]bool)}
}

func (l *layout) at(key string) (where, name string, content *folder) {
	where = ""
	if i := strings.LastIndex(key, "/"); i >= 0 {
		where = key[:i]
	}
	name = strings.TrimPrefix(strings.TrimPrefix(key, where), "/")
	if l.folders[where] == nil {
		l.folders[where] = &folder{}
	}
	return where, name, l.folders[where]
}

func (l *layout) object(object store.Object) {
	where, name, content := l.at(object.Key)
	content.Add(object.Size)
	content.changed = latest(content.changed, object.Modified)
	if name == record.ManifestName {
		l.roots[where], l.manifests[where] = true, true
	}
	if i := strings.Index("/"+object.Key, "/"+record.CheckpointFolder); i >= 0 {
		l.roots[object.Key[:max(0, i-1)]] = true
	}
}

func (l *layout) upload(upload store.OpenUpload) {
	_, _, content := l.at(upload.Key)
	content.changed = latest(content.changed, upload.Initiated)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b.UTC()
}

// root is the outermost delivery that a folder lies in.
func (l *layout) root(where string) (prefix string, found bool) {
	for _, above := range append(ancestors(where), where) {
		if l.roots[above] {
			return above, true
		}
	}
	return "", false
}

// revisions sums up the folders of each revision, and counts the rest as other.
func (l *layout) revisions(other *record.FileCount) map[string]*folder {
	l.above = make(map[string]bool)
	for root, is := range l.roots {
		if is {
			for _, prefix := range ancestors(root) {
				l.above[prefix] = true
			}
		}
	}
	found := make(map[string]*folder)
	for where, content := range l.folders {
		prefix, is := l.revision(where)
		if !is {
			other.Files, other.Bytes = other.Files+content.Files, other.Bytes+content.Bytes
			continue
		}
		if found[prefix] == nil {
			found[prefix] = &folder{}
		}
		sum := found[prefix]
		sum.Files, sum.Bytes = sum.Files+content.Files, sum.Bytes+content.Bytes
		sum.changed = latest(sum.changed, content.changed)
	}
	return found
}

// revision is the one that a folder belongs to.
func (l *layout) revision(where string) (prefix string, is bool) {
	if root, found := l.root(where); found {
		return root, l.addressed(root)
	}
	for _, above := range append(ancestors(where), where) {
		// Without a manifest; what other deliveries lie in is no revision.
		if l.addressed(above) {
			return above, !l.above[above]
		}
	}
	return "", false
}

// addressed says whether a prefix below the base is named after a commit. Keys
// with empty or dotted segments are none that a sync writes.
func (l *layout) addressed(prefix string) bool {
	if !record.IsRelative(prefix) || prefix == l.base || (l.base != "" && !below(prefix, l.base)) {
		return false
	}
	return record.IsCommit(prefix[strings.LastIndex(prefix, "/")+1:])
}

// deliveries are the roots that are no revisions, the outermost only.
func (l *layout) deliveries() []string {
	var all []string
	for _, root := range slices.Sorted(maps.Keys(l.roots)) {
		if outer, found := l.root(root); found && outer == root && !l.addressed(root) {
			all = append(all, root)
		}
	}
	return all
}
