package sync

import (
	"fmt"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/hub"
)

// widen makes the files that a manifest of the same revision lists part of this
// delivery, where the plan leaves them out. A prefix only gains files: servers
// rely on those that were promised, so that a narrower plan neither takes one
// away nor calls the prefix complete while one of them lacks.
func (r *run) widen() error {
	r.skipped = r.omitted
	if r.previous == nil || r.previous.Revision != r.commit || r.previous.ModelID != r.repo {
		return nil
	}
	promised := make(map[string]bool, len(r.previous.Files))
	for _, file := range r.previous.Files {
		promised[file.Path] = true
	}
	known := make(map[string]hub.File, len(r.listed))
	for _, file := range r.listed {
		known[file.Path] = file
	}
	r.skipped = []record.ManifestSkipped{}
	files, example := make([]hub.File, 0, len(r.listed)), ""
	for _, item := range r.files {
		files = append(files, item.file)
	}
	for _, omitted := range r.omitted {
		if !promised[omitted.Path] {
			r.skipped = append(r.skipped, omitted)
			continue
		}
		example = omitted.Path
		// The first worker brings it over: the others may not have seen the
		// manifest, and must divide the same list.
		r.files = append(r.files, &item{file: known[omitted.Path]})
		files = append(files, known[omitted.Path])
	}
	if example == "" {
		return nil
	}
	r.warn(fmt.Sprintf("the prefix was delivered with %d files that this plan leaves out, such as %s: they stay part of it; deliver to another prefix to have fewer", len(files)-len(r.chosen), example))
	return r.budget(files)
}

// selection is how the files of the manifest were chosen: as the wider plan says.
func (r *run) selection(m *record.Manifest) {
	m.Include, m.Exclude, m.Preset = orEmpty(r.plan.Include), orEmpty(r.plan.Exclude), r.plan.Preset
	if r.previous != nil && len(r.files) > len(r.chosen) {
		m.Include, m.Exclude, m.Preset = orEmpty(r.previous.Include), orEmpty(r.previous.Exclude), r.previous.Preset
	}
}
