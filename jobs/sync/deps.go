package sync

import (
	"context"
	"crypto/rand"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"golang.org/x/sync/semaphore"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/hub"
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
