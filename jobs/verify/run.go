package verify

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"golang.org/x/sync/errgroup"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

// DefaultParallel is how many objects are looked at together.
const DefaultParallel = 8

// Deps is what a run needs and a plan does not hold. The zero value works, with
// the environment's S3 credentials.
type Deps struct {
	// Emit hears of every event; calls do not overlap.
	Emit func(record.Event)
	// Now is the clock; nil is the real one.
	Now func() time.Time
	// ProgressEvery is the time between two progress events; 0 is 10 s.
	ProgressEvery time.Duration
	// Credentials and Transport replace those of the environment.
	Credentials aws.CredentialsProvider
	Transport   http.RoundTripper
	// Attempts is how often a request is tried; 0 is 8.
	Attempts int
}

// run is the state of one verification.
type run struct {
	plan   record.VerifyPlan
	deps   Deps
	bucket *store.Bucket
	prefix string

	manifest record.Manifest
	files    atomic.Int64
	read     atomic.Int64

	mu     sync.Mutex
	result record.ModelVerification
}

// Run compares a prefix with its manifest. Differences are not an error: they
// are in the document, which Error turns into one. An error means that the
// comparison could not be made: no manifest, no permission, no store.
func Run(ctx context.Context, plan record.VerifyPlan, deps Deps) (record.ModelVerification, error) {
	if err := plan.Validate(); err != nil {
		return record.ModelVerification{}, err
	}
	if deps.Emit == nil {
		deps.Emit = func(record.Event) {}
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if deps.ProgressEvery == 0 {
		deps.ProgressEvery = 10 * time.Second
	}
	if plan.Parallel == 0 {
		plan.Parallel = DefaultParallel
	}
	r := &run{plan: plan, deps: deps}
	err := r.run(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return record.ModelVerification{}, store.Explain(err)
	}
	return r.result, nil
}

// Error is the answer "no" as an error of kind Differs, nil where all matches.
func Error(result record.ModelVerification) error {
	if result.Matches {
		return nil
	}
	first := result.Problems[0]
	count := ""
	if result.ProblemCount > 1 {
		count = fmt.Sprintf("%d differences, the first: ", result.ProblemCount)
	}
	hint := "heal it: run `kubectl inference sync-model` again with the same revision and destination"
	if result.Mode == record.VerifyFull {
		// What only the bytes tell, a sync sees only if it reads them.
		hint += ", and --recheck"
	}
	if result.Signature.State == record.SignatureInvalid {
		hint = "do not serve it: find out who wrote to the prefix, and whether --key is the key that it was signed with"
	}
	return failure.New(failure.Differs, hint, "verify %s: %s%s", result.Location, count, Sentence(first))
}

// Sentence puts a problem into words.
func Sentence(p record.ModelProblem) string {
	switch p.Kind {
	case record.ProblemContent:
		if p.Path == record.ManifestName {
			return fmt.Sprintf("%s is of %s, not of %s", p.Path, p.Found, p.Expected)
		}
	case record.ProblemMissing:
		return fmt.Sprintf("%s is missing", p.Path)
	case record.ProblemExtra:
		return fmt.Sprintf("%s is there and not in the manifest", p.Path)
	case record.ProblemSize:
		return fmt.Sprintf("%s has %s bytes, the manifest says %s", p.Path, p.Found, p.Expected)
	case record.ProblemSignature:
		return fmt.Sprintf("%s: %s, but %s", p.Path, p.Expected, p.Found)
	}
	return fmt.Sprintf("%s: its %s is %s, the manifest says %s", p.Path, p.Kind, p.Found, p.Expected)
}

func (r *run) run(ctx context.Context) error {
	started := r.deps.Now()
	bucket, prefix, err := r.plan.Bucket()
	if err != nil {
		return err
	}
	verifier, err := r.verifier()
	if err != nil {
		return err
	}
	r.prefix = prefix
	r.result = record.ModelVerification{
		TypeMeta: record.Meta(record.KindModelVerification), Location: "s3://" + path.Join(bucket, prefix), Mode: r.plan.Mode, Time: started.UTC(),
		Problems: []record.ModelProblem{}, Warnings: []string{},
	}
	r.bucket, err = store.Open(ctx, store.Config{
		Bucket: bucket, Endpoint: r.plan.S3Endpoint, Region: r.plan.S3Region,
		Credentials: r.deps.Credentials, Transport: r.deps.Transport, Attempts: r.deps.Attempts,
		OnRetry: store.Announce(r.deps.Emit, r.deps.Now),
	})
	if err != nil {
		return err
	}
	if err := r.readManifest(ctx); err != nil {
		return err
	}
	if err := r.checkSignature(ctx, verifier); err != nil {
		return err
	}
	if err := r.compare(ctx); err != nil {
		return err
	}
	if weak := r.result.Listed.Files - r.result.Proved.Files; weak > 0 && len(r.result.Problems) == 0 {
		r.warn(fmt.Sprintf("%d files agree in size and metadata only: the store has no checksum of them; --full reads them", weak))
	}
	r.result.BytesRead = r.read.Load()
	r.result.DurationSeconds = r.deps.Now().Sub(started).Seconds()
	slices.SortStableFunc(r.result.Problems, func(a, b record.ModelProblem) int { return strings.Compare(a.Path, b.Path) })
	r.result.ProblemCount = len(r.result.Problems)
	r.result.Problems = r.result.Problems[:min(r.result.ProblemCount, record.MaxProblems)]
	r.result.Matches = r.result.ProblemCount == 0
	return nil
}

// compare holds every listed object against its line, and finds what is there
// without one.
func (r *run) compare(ctx context.Context) error {
	there, err := r.list(ctx)
	if err != nil {
		return err
	}
	stop := r.progress(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(r.plan.Parallel)
	for i := range r.manifest.Files {
		file := &r.manifest.Files[i]
		size, found := there[file.Path]
		delete(there, file.Path)
		switch {
		case !found:
			r.problem(file.Path, record.ProblemMissing, fmt.Sprintf("%d bytes", file.Size), "nothing")
		case size != file.Size:
			r.problem(file.Path, record.ProblemSize, fmt.Sprint(file.Size), fmt.Sprint(size))
		default:
			group.Go(func() error { return r.object(ctx, file) })
			continue
		}
		r.files.Add(1)
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for name, size := range there {
		r.problem(name, record.ProblemExtra, "nothing", fmt.Sprintf("%d bytes", size))
	}
	return nil
}

// list returns the sizes of what lies below the prefix, by path, without the
// sync's own objects.
func (r *run) list(ctx context.Context) (map[string]int64, error) {
	below := ""
	if r.prefix != "" {
		below = r.prefix + "/"
	}
	there := make(map[string]int64, len(r.manifest.Files))
	for object, err := range r.bucket.List(ctx, below) {
		if err != nil {
			return nil, err
		}
		name := strings.TrimPrefix(object.Key, below)
		if _, listed := r.line(name); listed || !record.OwnObject(name) {
			there[name] = object.Size
		}
	}
	return there, nil
}

// line finds a path in the manifest.
func (r *run) line(name string) (record.ManifestFile, bool) {
	for _, file := range r.manifest.Files {
		if file.Path == name {
			return file, true
		}
	}
	return record.ManifestFile{}, false
}

func (r *run) key(name string) string { return path.Join(r.prefix, name) }

func (r *run) problem(name, kind, expected, found string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Problems = append(r.result.Problems, record.ModelProblem{Path: name, Kind: kind, Expected: expected, Found: found})
}
