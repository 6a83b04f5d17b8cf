package sync

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"path"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"golang.org/x/sync/semaphore"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/hub"
	"github.com/kubectl-inference/kubectl-inference/jobs/signing"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

const (
	// DefaultParallel and DefaultMemory are what a plan without its own gets.
	DefaultParallel = 8
	DefaultMemory   = 256 << 20

	defaultProgress = 10 * time.Second
)

// Deps is what a run needs and a plan does not hold. The zero value works, with
// the environment's S3 credentials.
type Deps struct {
	// Token is the Hub token, "" for none.
	Token string
	// Emit hears of every event; calls do not overlap.
	Emit func(record.Event)
	// Now is the clock, Wait sleeps; nil is the real thing.
	Now  func() time.Time
	Wait func(context.Context, time.Duration) error
	// ProgressEvery is the time between two progress events; 0 is 10 s.
	ProgressEvery time.Duration
	// Version is that of this program, for the manifest and the User-Agent.
	Version string
	// HubTransport and StoreTransport carry the requests; nil is the default.
	HubTransport, StoreTransport http.RoundTripper
	// Credentials replaces the environment's S3 credentials.
	Credentials aws.CredentialsProvider
	// SignKey is the private key, as PEM, of a plan that asks for a signature.
	SignKey []byte
	// Attempts is how often a request to either side is tried; 0 is 8.
	Attempts int
	// Index is this worker's number, where the plan has several: 0 is the first,
	// which writes the manifest.
	Index int
	// Patience is how long the first worker waits while no file of the others
	// arrives, before it brings the rest over itself; 0 is 10 minutes.
	Patience time.Duration
	// InJob says that a Job of the plugin runs this: what mends an error is a
	// flag and a Secret then, not a variable of the user's own shell.
	InJob bool
	// Run names this run towards others that write to the same flat prefix; the
	// workers of one Job and the pods that replace them share it. "" is unique.
	Run string
	// Beat is how often the claim of a flat prefix is renewed; 0 is 10 s.
	Beat time.Duration
	// CheckpointEvery is the time after which a large file's progress is saved
	// in the store; 0 is 10 s.
	CheckpointEvery time.Duration
	// Hold waits until no other Job works on the prefix, and returns what ends
	// its hold; waiting hears of who is waited for. Nil holds nothing.
	Hold func(ctx context.Context, bucket, prefix string, waiting func(holder string)) (release func(), err error)
}

// Run carries out a plan. Its error is fit for a user: it is a failure.Error
// whose kind says whether another try can help (Failed, Unreachable) or not.
func Run(ctx context.Context, plan record.SyncPlan, deps Deps) (record.SyncResult, error) {
	if err := plan.Validate(); err != nil {
		return record.SyncResult{}, err
	}
	r, err := newRun(plan, deps)
	if err != nil {
		return record.SyncResult{}, explain(err, plan, deps.InJob)
	}
	if err := r.run(ctx); err != nil {
		return record.SyncResult{}, explain(err, plan, deps.InJob)
	}
	return r.result, nil
}

// run is the state of one sync.
type run struct {
	plan   record.SyncPlan
	deps   Deps
	hub    *hub.Client
	bucket *store.Bucket
	report *reporter

	commit string
	repo   string
	prefix string
	can    record.StoreCapabilities
	// previous is the manifest found in the prefix, nil where there is none
	// that can be trusted; stale says that some manifest is there.
	previous *record.Manifest
	stale    bool
	// manifestETag is that of any manifest found, "" for none.
	manifestETag string
	// listed are the files of the revision; chosen are those of the plan, and
	// omitted the rest. files are those of the delivery, skipped the rest, see widen.
	listed, chosen []hub.File
	omitted        []record.ManifestSkipped
	files          []*item
	skipped        []record.ManifestSkipped
	// sizes are those of the objects that were there, by key.
	sizes map[string]int64
	// unfinished says that a flat prefix has a claim, left what it may hold.
	unfinished bool
	left       []string
	claiming   sync.Mutex
	// work is what this worker has to bring over.
	work record.FileCount

	memory  *memory
	fetches *semaphore.Weighted
	sends   *semaphore.Weighted

	// signer is nil where nobody asked for a signature.
	signer *signing.Signer
	// probed is the key of this run's probe.
	probed string
	// checkpoints are the keys of those found in the store.
	checkpoints  map[string]bool
	noCheckpoint sync.Once

	started time.Time
	// mu guards result where files are at work.
	mu     sync.Mutex
	result record.SyncResult
}

// item is one file of the plan and what is known about it.
type item struct {
	file hub.File
	// present says that the right object is there, reason why it is not.
	present bool
	reason  string
	// worker is whose part the file is.
	worker int
	// content is of a file that had to be read before its upload.
	content []byte
	// done is the manifest's line, once the object is.
	done record.ManifestFile
}

func newRun(plan record.SyncPlan, deps Deps) (*run, error) {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if deps.Emit == nil {
		deps.Emit = func(record.Event) {}
	}
	if deps.ProgressEvery == 0 {
		deps.ProgressEvery = defaultProgress
	}
	if deps.CheckpointEvery == 0 {
		deps.CheckpointEvery = checkpointEvery
	}
	if deps.Run == "" {
		deps.Run = rand.Text()
	}
	if deps.Beat == 0 {
		deps.Beat = claimBeat
	}
	if deps.Version == "" {
		deps.Version = "dev"
	}
	if plan.Parallel == 0 {
		plan.Parallel = DefaultParallel
	}
	if plan.MemoryBytes == 0 {
		plan.MemoryBytes = DefaultMemory
	}
	if plan.Revision == "" {
		plan.Revision = "main"
	}
	if plan.Preset == "" {
		plan.Preset = record.PresetAll
	}
	r := &run{
		plan: plan, deps: deps, started: deps.Now(), checkpoints: make(map[string]bool),
		fetches: semaphore.NewWeighted(int64(plan.Parallel)), sends: semaphore.NewWeighted(int64(plan.Parallel)),
	}
	r.report = newReporter(deps.Emit, deps.Now)
	client, err := hub.New(hub.Options{
		Endpoint: plan.HubEndpoint, Token: deps.Token, Transport: deps.HubTransport, UserAgent: "kubectl-inference/" + deps.Version,
		Attempts: deps.Attempts, Now: deps.Now, Wait: deps.Wait, OnRetry: r.report.retry,
	})
	if err != nil {
		return nil, err
	}
	r.hub, r.report.downloaded = client, client.Bytes
	return r, nil
}

func (r *run) run(ctx context.Context) error {
	if err := r.prepareSigning(); err != nil {
		return err
	}
	if err := r.list(ctx); err != nil {
		return err
	}
	defer boundGarbage(r.plan.MemoryBytes, len(r.files))()
	if err := r.checkSignable(); err != nil {
		return err
	}
	release, err := r.hold(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := r.open(ctx); err != nil {
		return err
	}
	err = r.deliver(ctx)
	if err != nil && !r.plan.DryRun && ctx.Err() == nil && permanent(explain(err, r.plan, r.deps.InJob)) {
		r.abandon(ctx)
	}
	return err
}

// deliver does what is left to do, which may be nothing.
func (r *run) deliver(ctx context.Context) error {
	manifest := r.complete()
	switch {
	case manifest != nil && !r.touches():
		return r.already(ctx, manifest)
	case r.deps.Index > 0:
		// The first worker speaks for all.
		return r.assist(ctx)
	}
	if err := r.check(ctx); err != nil {
		return err
	}
	if r.plan.DryRun {
		r.finish(nil)
		return nil
	}
	if r.probed == "" {
		if err := r.probe(ctx); err != nil {
			return err
		}
	}
	return r.claimed(ctx, r.carryOut)
}

// touches says whether a flat prefix that is complete is written to all the
// same: to end what an unfinished delivery left, or to be signed.
func (r *run) touches() bool {
	return r.plan.Flat && !r.plan.DryRun && r.deps.Index == 0 && (r.unfinished || r.signer != nil)
}

// already is the end of a run that found its prefix complete.
func (r *run) already(ctx context.Context, manifest *record.Manifest) error {
	r.result.AlreadyComplete = true
	if err := r.signComplete(ctx, manifest); err != nil {
		return err
	}
	if !r.plan.DryRun && r.deps.Index == 0 {
		// The run that completed it may have been killed before it swept.
		r.sweep(ctx)
	}
	r.finish(manifest)
	return nil
}

// carryOut brings what is missing and commits.
func (r *run) carryOut(ctx context.Context) error {
	if manifest := r.complete(); manifest != nil {
		if err := r.removeFormer(ctx); err != nil {
			return err
		}
		return r.already(ctx, manifest)
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.transfer(ctx); err != nil {
		return err
	}
	if err := r.gather(ctx); err != nil {
		return err
	}
	manifest, err := r.promise(ctx)
	if err != nil {
		return err
	}
	r.sweep(ctx)
	r.finish(manifest)
	return nil
}

// list resolves the revision and chooses its files.
func (r *run) list(ctx context.Context) error {
	revision, err := r.hub.Resolve(ctx, r.plan.Repo, r.plan.Revision)
	if err != nil {
		return err
	}
	r.repo, r.commit = revision.Repo, revision.Commit
	if record.IsCommit(r.plan.Revision) && r.plan.Revision != r.commit {
		return failure.New(failure.Failed, "", "resolve %s: asked for commit %s, the Hub answers with %s", r.repo, r.plan.Revision, r.commit)
	}
	if r.prefix, err = r.plan.Prefix(r.commit); err != nil {
		return err
	}
	if last := path.Base(r.prefix); r.plan.Flat && record.IsCommit(last) && last != r.commit {
		return failure.New(failure.Usage, "leave out --flat, or choose a prefix that does not end in a commit",
			"deliver %s at %s to %s: the prefix is the immutable one of another revision", r.repo, r.commit, r.plan.Destination)
	}
	listed, err := r.hub.List(ctx, r.repo, r.commit)
	if err != nil {
		return err
	}
	chosen, skipped, err := choose(listed, r.plan)
	if err != nil {
		return failure.New(failure.Usage, "", "choose files: %w", err)
	}
	if len(chosen) == 0 {
		return failure.New(failure.Usage, "the patterns and the preset leave nothing of this revision; try --dry-run without them",
			"choose files: none of the %d files of %s at %s is left", len(listed), r.repo, r.commit)
	}
	if err := checkNames(r.prefix, chosen); err != nil {
		return failure.New(failure.Usage, "leave the file out with --exclude", "plan %s: %w", r.repo, err)
	}
	if !r.plan.AllowUnverified {
		if err := checkDigests(chosen); err != nil {
			return failure.New(failure.Usage, "use an endpoint that lists lfs.oid, or accept it with --allow-unverified", "plan %s: %w", r.repo, err)
		}
	}
	r.chosen, r.omitted, r.listed = chosen, skipped, listed
	return r.budget(chosen)
}

// budget divides the memory into buffers that hold any part of these files.
func (r *run) budget(files []hub.File) error {
	var part int64 = 1
	for _, file := range files {
		part = max(part, min(file.Size, store.PartSize(file.Size)))
	}
	if part > r.plan.MemoryBytes {
		return failure.New(failure.Usage, fmt.Sprintf("give it at least --memory %d", part),
			"plan %s: a memory budget of %d bytes does not hold one part of %d bytes", r.repo, r.plan.MemoryBytes, part)
	}
	r.memory = newMemory(r.plan.MemoryBytes, part)
	return nil
}

// open reaches the bucket and looks what is there.
func (r *run) open(ctx context.Context) error {
	name, _, err := r.plan.Bucket()
	if err != nil {
		return err
	}
	r.bucket, err = store.Open(ctx, store.Config{
		Bucket: name, Endpoint: r.plan.S3Endpoint, Region: r.plan.S3Region, KMSKey: r.plan.KMSKey,
		Credentials: r.deps.Credentials, Transport: r.deps.StoreTransport, Attempts: r.deps.Attempts, OnRetry: r.report.storeRetry,
	})
	if err != nil {
		return err
	}
	if err := r.readPrevious(ctx); err != nil {
		return err
	}
	// What a manifest says of the store is believed only where it asks for more:
	// whoever writes is to know, and nothing is taken for right on less evidence
	// because a manifest says that there is no better.
	r.can = record.StoreCapabilities{RefusesWrongSHA256: true, ConditionalPut: true, ReturnsSHA256: true, RefusesWrongPart: true, ListsPartSHA256: true}
	if !r.plan.DryRun && (r.previous == nil || r.previous.StoreCapabilities != r.can) {
		if err := r.probe(ctx); err != nil {
			return err
		}
	}
	return r.survey(ctx)
}

// survey finds out what there is to do, given the manifest that was found.
func (r *run) survey(ctx context.Context) error {
	if r.plan.Flat {
		found, _, err := r.readClaim(ctx)
		if err != nil {
			return err
		}
		if r.unfinished = found != nil; r.unfinished {
			r.left = found.Paths
		}
	}
	r.files = nil
	for _, file := range r.chosen {
		r.files = append(r.files, &item{file: file})
	}
	divide(r.files, r.plan.Workers)
	if err := r.widen(); err != nil {
		return err
	}
	if err := r.checkStanding(ctx); err != nil {
		return err
	}
	if err := r.look(ctx); err != nil {
		return err
	}
	r.announce()
	return nil
}

// probe tries what the store can do, and says in words what it cannot.
func (r *run) probe(ctx context.Context) error {
	unique := rand.Text()
	r.probed = r.key(record.ProbePrefix + unique)
	can, err := r.bucket.Probe(ctx, r.prefix, unique)
	if err != nil {
		return err
	}
	r.can = can
	if !can.RefusesWrongSHA256 {
		r.warn("the store accepts an object whose SHA-256 is wrong: damage on the way to it would go unnoticed until a full verify")
	}
	if !can.ConditionalPut {
		r.warn("the store ignores conditional writes: two syncs of one prefix at the same time are not kept apart")
	}
	if !can.ReturnsSHA256 {
		r.warn("the store does not return SHA-256 checksums: objects already there are recognised by their metadata alone")
	}
	if !can.RefusesWrongPart {
		r.warn("the store accepts a part whose SHA-256 is wrong: damage of a large file on the way to it would go unnoticed until a full verify")
	}
	if !r.resumes() {
		r.warn("the store does not vouch for the parts of an unfinished upload: a large file that is interrupted starts from its beginning")
	}
	return nil
}

// prepare makes the prefix ready for writing. A manifest that promises what is
// about to change goes first, so that a reader never finds a false promise.
func (r *run) prepare(ctx context.Context) error {
	if r.stale {
		if err := r.bucket.Delete(ctx, r.key(record.ManifestName)); err != nil {
			return err
		}
	}
	return r.removeFormer(ctx)
}

func (r *run) key(name string) string { return path.Join(r.prefix, name) }

func (r *run) warn(text string) {
	r.mu.Lock()
	r.result.Warnings = append(r.result.Warnings, text)
	r.mu.Unlock()
	r.report.emit(record.Event{Level: record.Warning, Name: "warning", Message: text})
}

// location is the prefix as a URL.
func (r *run) location() string { return "s3://" + path.Join(r.bucket.Name(), r.prefix) }
