package prune

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

// Deps is what a run needs and a plan does not hold. The zero value works, with
// the environment's S3 credentials.
type Deps struct {
	Emit        func(record.Event)
	Now         func() time.Time
	Credentials aws.CredentialsProvider
	Transport   http.RoundTripper
	// Attempts is how often a request is tried; 0 is 8.
	Attempts int
}

// revision is one revision and what only this package needs of it.
type revision struct {
	record.PruneRevision
	// prefix is its key prefix, group that of all revisions of its model.
	prefix, group string
	// why says why a manifest is foreign.
	why      string
	uploaded time.Time
	manifest *record.Manifest
}

// lists says whether the revision's own manifest lists a file.
func (v *revision) lists(name string) bool {
	return v.manifest != nil && slices.ContainsFunc(v.manifest.Files, func(f record.ManifestFile) bool { return f.Path == name })
}

type run struct {
	plan   record.PrunePlan
	deps   Deps
	bucket *store.Bucket
	base   string
	result record.PruneResult
}

// Run carries a plan out. Its error is fit for a user.
func Run(ctx context.Context, plan record.PrunePlan, deps Deps) (record.PruneResult, error) {
	if err := plan.Validate(); err != nil {
		return record.PruneResult{}, err
	}
	if deps.Emit == nil {
		deps.Emit = func(record.Event) {}
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	r := &run{plan: plan, deps: deps}
	err := r.run(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return record.PruneResult{}, store.Explain(err)
	}
	return r.result, nil
}

func (r *run) run(ctx context.Context) error {
	name, base, err := record.SplitLocation(r.plan.Location)
	if err != nil {
		return err
	}
	r.base = base
	r.result = record.PruneResult{
		TypeMeta: record.Meta(record.KindPruneResult), Location: "s3://" + path.Join(name, base), Time: r.deps.Now().UTC(), Applied: r.plan.Apply,
		Revisions: []record.PruneRevision{}, Unread: append([]string{}, r.plan.Unread...), Warnings: []string{},
	}
	r.bucket, err = store.Open(ctx, store.Config{
		Bucket: name, Endpoint: r.plan.S3Endpoint, Region: r.plan.S3Region,
		Credentials: r.deps.Credentials, Transport: r.deps.Transport, Attempts: r.deps.Attempts,
		OnRetry: store.Announce(r.deps.Emit, r.deps.Now),
	})
	if err != nil {
		return err
	}
	revisions, err := r.scan(ctx)
	if err != nil {
		return err
	}
	decide(revisions, r.plan, r.deps.Now())
	for _, revision := range revisions {
		if revision.Action == record.PruneDelete {
			if err := r.delete(ctx, revision); err != nil {
				return err
			}
		}
		r.result.Revisions = append(r.result.Revisions, revision.PruneRevision)
	}
	return r.noteVersions(ctx)
}

// noteVersions says where a delete frees no space.
func (r *run) noteVersions(ctx context.Context) error {
	if r.result.Deleted.Files == 0 {
		return nil
	}
	keeps, err := r.bucket.KeepsVersions(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return err
	case err != nil:
		r.warn(fmt.Sprintf("whether the bucket keeps old versions is not known: %v", err))
	case keeps:
		r.warn("the bucket keeps old versions: what is deleted is stored and billed until a lifecycle rule for noncurrent versions removes it")
	}
	return nil
}

func (r *run) warn(text string) {
	r.result.Warnings = append(r.result.Warnings, text)
	r.say(record.Warning, "warning", text)
}

func (r *run) say(level record.Level, name, text string) {
	r.deps.Emit(record.Event{Time: r.deps.Now().UTC(), Level: level, Name: name, Message: text})
}

// delete removes a revision, or refuses to: objects that no sync wrote are
// somebody's. The listing is made anew, just before.
func (r *run) delete(ctx context.Context, v *revision) error {
	keys, extra, err := r.contents(ctx, v)
	if err != nil {
		return err
	}
	if reason := r.arrived(keys, v); reason != "" {
		v.Action, v.Reason = record.PruneRefuse, reason
		return nil
	}
	keys = slices.DeleteFunc(keys, func(key string) bool { return key == v.prefix+"/"+record.ManifestName })
	if len(extra) > 0 && !r.plan.Extra {
		v.Action, v.Reason = record.PruneRefuse, fmt.Sprintf("it holds %d objects that no sync wrote, such as %s (--extra deletes them too)", len(extra), extra[0])
		return nil
	}
	if outer, err := r.began(ctx, v); err != nil {
		return err
	} else if outer != "" {
		v.Action, v.Reason = record.PruneRefuse, "since it was listed, a delivery began in "+outer
		return nil
	}
	r.result.Deleted.Files += v.Content.Files
	r.result.Deleted.Bytes += v.Content.Bytes
	if !r.plan.Apply {
		return nil
	}
	if v.manifest != nil {
		if err := r.bucket.Delete(ctx, v.prefix+"/"+record.ManifestName); err != nil {
			return err
		}
	}
	if err := r.bucket.DeleteAll(ctx, keys); err != nil {
		return failure.Wrap(store.Explain(err), "prune %s (its manifest is gone; run it again to finish)", v.Location)
	}
	uploads, err := r.bucket.OpenUploads(ctx, v.prefix+"/")
	if err != nil {
		return err
	}
	for _, upload := range uploads {
		if err := r.bucket.AbortUpload(ctx, upload); err != nil {
			return err
		}
	}
	r.say(record.Info, "pruned", fmt.Sprintf("deleted %s: %d objects", v.Location, v.Content.Files))
	return nil
}

// arrived says which manifest lies in a revision that the listing before did
// not show, or that another delivery has below it: what it lists is not ours to
// delete, not even with --extra.
func (r *run) arrived(keys []string, v *revision) (reason string) {
	for _, key := range keys {
		name := strings.TrimPrefix(key, v.prefix+"/")
		switch {
		case name == record.ManifestName && v.manifest == nil:
			return "since it was listed, a sync completed it"
		case path.Base(name) == record.ManifestName && name != record.ManifestName && !v.lists(name):
			return "another delivery lies in it, with " + failure.Clean(name)
		}
	}
	return ""
}

// began names a delivery that has come to a prefix above the revision.
func (r *run) began(ctx context.Context, v *revision) (outer string, err error) {
	if !r.plan.Apply {
		return "", nil
	}
	for _, above := range ancestors(v.prefix) {
		if is, err := r.isDelivery(ctx, above); err != nil || is {
			return r.url(above), err
		}
	}
	return "", nil
}

// contents lists what is below a revision, and what of it is not the sync's.
func (r *run) contents(ctx context.Context, v *revision) (keys, extra []string, err error) {
	listed := make(map[string]bool)
	if v.manifest != nil {
		for _, file := range v.manifest.Files {
			listed[file.Path] = true
		}
	}
	for object, err := range r.bucket.List(ctx, v.prefix+"/") {
		if err != nil {
			return nil, nil, err
		}
		name := strings.TrimPrefix(object.Key, v.prefix+"/")
		keys = append(keys, object.Key)
		if record.OwnObject(name) || listed[name] {
			continue
		}
		if v.manifest == nil {
			// Each object of a sync states the digest of its file.
			found, err := r.bucket.Head(ctx, object.Key)
			if store.CauseOf(err) == store.NoObject {
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			if found.Metadata["sha256"] != "" || found.Metadata["git-sha1"] != "" {
				continue
			}
		}
		extra = append(extra, failure.Clean(name))
	}
	slices.Sort(extra)
	return keys, extra, nil
}
