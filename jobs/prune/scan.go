package prune

import (
	"context"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

// maxManifest bounds what is read as a manifest.
const maxManifest = 64 << 20

// scan finds the revisions below the base: the places whose last segment is a
// commit id.
func (r *run) scan(ctx context.Context) ([]*revision, error) {
	found := make(map[string]*revision)
	withManifest := make(map[string]bool)
	base := ""
	if r.base != "" {
		base = r.base + "/"
	}
	for object, err := range r.bucket.List(ctx, base) {
		if err != nil {
			return nil, err
		}
		v := r.at(found, object.Key)
		if v == nil {
			r.result.Other.Add(object.Size)
			continue
		}
		v.Content.Add(object.Size)
		v.Changed = latest(v.Changed, object.Modified)
		if object.Key == v.prefix+"/"+record.ManifestName {
			withManifest[v.prefix] = true
		}
	}
	uploads, err := r.bucket.OpenUploads(ctx, base)
	if err != nil {
		return nil, err
	}
	for _, upload := range uploads {
		if v := r.at(found, upload.Key); v != nil {
			v.Changed = latest(v.Changed, upload.Initiated)
		}
	}
	revisions := make([]*revision, 0, len(found))
	for _, v := range found {
		if withManifest[v.prefix] {
			if err := r.readManifest(ctx, v); err != nil {
				return nil, err
			}
		}
		revisions = append(revisions, v)
	}
	slices.SortFunc(revisions, func(a, b *revision) int { return strings.Compare(a.prefix, b.prefix) })
	return revisions, nil
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b.UTC()
}

// at returns the revision that a key lies in, nil for a key in none.
func (r *run) at(found map[string]*revision, key string) *revision {
	rest := strings.TrimPrefix(strings.TrimPrefix(key, r.base), "/")
	segments := strings.Split(rest, "/")
	i := slices.IndexFunc(segments[:len(segments)-1], record.IsCommit)
	if i < 0 {
		return nil
	}
	prefix := path.Join(append([]string{r.base}, segments[:i+1]...)...)
	if prefix != key[:min(len(key), len(prefix))] {
		// A key with empty or dotted segments, which no sync writes.
		return nil
	}
	v, ok := found[prefix]
	if !ok {
		group := strings.TrimSuffix(strings.TrimSuffix(prefix, segments[i]), "/")
		v = &revision{prefix: prefix, group: group}
		v.Location, v.Revision, v.State = "s3://"+path.Join(r.bucket.Name(), prefix), segments[i], record.StateUnfinished
		v.ModelID = path.Join(path.Base(path.Dir(group)), path.Base(group))
		found[prefix] = v
	}
	return v
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
