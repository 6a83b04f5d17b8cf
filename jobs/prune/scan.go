package prune

import (
	"context"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

// maxManifest bounds what is read as a manifest.
const maxManifest = 64 << 20

// cacheFolder is where a cache of the Hub has its revisions.
const cacheFolder = "snapshots"

// scan finds the revisions below the base: the places whose last segment is a
// commit id, and that lie in no other delivery.
func (r *run) scan(ctx context.Context) ([]*revision, error) {
	layout := newLayout(r.base)
	for _, above := range ancestors(r.base) {
		is, err := r.isDelivery(ctx, above)
		if err != nil {
			return nil, err
		}
		layout.roots[above] = layout.roots[above] || is
	}
	base := ""
	if r.base != "" {
		base = r.base + "/"
	}
	for object, err := range r.bucket.List(ctx, base) {
		if err != nil {
			return nil, err
		}
		layout.object(object)
	}
	uploads, err := r.bucket.OpenUploads(ctx, base)
	if err != nil {
		return nil, err
	}
	for _, upload := range uploads {
		layout.upload(upload)
	}
	revisions := make([]*revision, 0)
	for prefix, content := range layout.revisions(&r.result.Other) {
		v := &revision{prefix: prefix, group: strings.TrimPrefix(path.Dir("/"+prefix), "/")}
		v.Location, v.Revision, v.State = r.url(prefix), path.Base(prefix), record.StateUnfinished
		v.ModelID = path.Join(path.Base(path.Dir("/"+v.group)), path.Base("/"+v.group))
		v.Content, v.Changed = content.FileCount, content.changed
		if layout.manifests[prefix] {
			if err := r.readManifest(ctx, v); err != nil {
				return nil, err
			}
		} else if path.Base(v.group) == cacheFolder {
			v.State, v.why = record.StateForeign, "it has no manifest, and looks like part of a cache of the Hub that lies in a delivery"
		}
		revisions = append(revisions, v)
	}
	slices.SortFunc(revisions, func(a, b *revision) int { return strings.Compare(a.prefix, b.prefix) })
	for _, root := range layout.deliveries() {
		r.warn(r.url(root) + " is a delivery itself, with " + record.ManifestName + " or " + record.CheckpointFolder + " directly below it: no revision is looked for in it")
	}
	return revisions, nil
}

func (r *run) url(prefix string) string {
	return "s3://" + failure.Clean(strings.TrimSuffix(r.bucket.Name()+"/"+prefix, "/"))
}

// ancestors are the prefixes above one, the bucket itself included.
func ancestors(prefix string) []string {
	if prefix == "" {
		return nil
	}
	above := []string{""}
	for i, c := range prefix {
		if c == '/' {
			above = append(above, prefix[:i])
		}
	}
	return above
}

// isDelivery says whether a sync wrote, or writes, a model to this very prefix.
// It lists, which needs no right on objects outside the base.
func (r *run) isDelivery(ctx context.Context, prefix string) (bool, error) {
	if prefix != "" {
		prefix += "/"
	}
	for _, sign := range []string{record.ManifestName, record.CheckpointFolder} {
		for object, err := range r.bucket.List(ctx, prefix+sign) {
			if err != nil {
				return false, err
			}
			if sign == record.CheckpointFolder || object.Key == prefix+sign {
				return true, nil
			}
			// Keys come in order: the name itself is before all that it begins.
			break
		}
	}
	return false, nil
}

// readManifest finds out whether a revision is complete, and ours.
func (r *run) readManifest(ctx context.Context, v *revision) error {
	v.State = record.StateForeign
	body, err := r.bucket.Get(ctx, v.prefix+"/"+record.ManifestName, 0, -1)
	if store.CauseOf(err) == store.NoObject {
		v.State = record.StateUnfinished
		return nil
	}
	if err != nil {
		return err
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, maxManifest+1))
	if err != nil {
		return err
	}
	manifest, err := record.ParseManifest(data)
	switch {
	case len(data) > maxManifest:
		v.why = "its manifest is larger than any that a sync writes"
	case err != nil:
		v.why = "its manifest is not ours: " + failure.Clean(err.Error())
	case manifest.SchemaVersion != record.ManifestSchema || manifest.Tool.Name != "kubectl-inference":
		v.why = "its manifest was written by another program"
	case manifest.Revision != v.Revision:
		v.why = "its manifest names revision " + failure.Clean(manifest.Revision)
	default:
		v.State, v.manifest, v.uploaded, v.ModelID = record.StateComplete, &manifest, manifest.UploadedAt, manifest.ModelID
	}
	return nil
}
