package hub_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/hub"
	fake "github.com/kubectl-inference/kubectl-inference/test/fakes/hub"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/hub/hubtest"
)

const repo = "lab/tiny"

// clock is a clock that waiting moves.
type clock struct {
	mu    sync.Mutex
	now   time.Time
	waits []time.Duration
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Wait(_ context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.waits = append(c.waits, d)
	return nil
}

func start(t *testing.T, options fake.Options, token string) (*hubtest.Server, *hub.Client, *clock) {
	t.Helper()
	clock := newClock()
	if options.Models == nil {
		options.Models = []fake.Model{{Name: repo, Bytes: 1 << 20}}
	}
	options.Now = clock.Now
	server := hubtest.Start(t, options)
	return server, client(t, hub.Options{Endpoint: server.URL, Token: token, Now: clock.Now, Wait: clock.Wait, Attempts: 3}), clock
}

func client(t *testing.T, options hub.Options) *hub.Client {
	t.Helper()
	client, err := hub.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func classOf(err error) hub.Class {
	var problem *hub.Error
	if errors.As(err, &problem) {
		return problem.Class
	}
	return -1
}

func find(t *testing.T, files []hub.File, path string) hub.File {
	t.Helper()
	for _, file := range files {
		if file.Path == path {
			return file
		}
	}
	t.Fatalf("%s is not listed", path)
	return hub.File{}
}

func TestListAndRead(t *testing.T) {
	server, client, _ := start(t, fake.Options{PageSize: 4}, "")
	revision, err := client.Resolve(t.Context(), repo, "main")
	if err != nil {
		t.Fatal(err)
	}
	commit, _ := server.Commit(repo, "main")
	if diff := cmp.Diff(hub.Revision{Repo: repo, Commit: commit}, revision); diff != "" {
		t.Errorf("revision (-want +got):\n%s", diff)
	}
	files, err := client.List(t.Context(), repo, commit)
	if err != nil {
		t.Fatal(err)
	}
	entries := server.Entries(repo, "main")
	if len(files) != len(entries) {
		t.Fatalf("listed %d of %d files", len(files), len(entries))
	}
	for _, entry := range entries {
		file := find(t, files, entry.Path)
		if file.Size != entry.Size || (file.SHA256 != "") != entry.LFS || (file.GitSHA1 != "") == entry.LFS {
			t.Errorf("%s: %+v", entry.Path, file)
		}
		data := make([]byte, file.Size)
		if err := client.Open(repo, commit, file).Read(t.Context(), 0, data); err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != entry.SHA256 {
			t.Errorf("%s: wrong bytes", entry.Path)
		}
	}
}

// One request to the Hub serves all ranges of a file, until its URL is close to
// its end (the Hub counts requests, and URLs live an hour).
func TestURLIsUsedAgain(t *testing.T) {
	server, client, clock := start(t, fake.Options{}, "")
	commit, _ := server.Commit(repo, "main")
	files, err := client.List(t.Context(), repo, commit)
	if err != nil {
		t.Fatal(err)
	}
	source := client.Open(repo, commit, find(t, files, "model-00001-of-00002.safetensors"))
	read := func() {
		t.Helper()
		if err := source.Read(t.Context(), 1000, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	want := func(n int) {
		t.Helper()
		if got := server.Stats().ResolveRequests; got != n {
			t.Errorf("%d requests to the Hub, want %d", got, n)
		}
	}
	read()
	read()
	want(1)
	clock.Wait(t.Context(), 49*time.Minute)
	read()
	want(1)
	clock.Wait(t.Context(), 2*time.Minute)
	read()
	want(2)
	source.Forget()
	read()
	want(3)
}

func TestRetries(t *testing.T) {
	const weights = "model-00001-of-00002.safetensors"
	tests := map[string]struct {
		fault fake.Fault
		// waits is checked where not nil: exact pauses that a server asked for.
		waits []time.Duration
		class hub.Class
		fails bool
	}{
		"Retry-After":             {fault: fake.Fault{Kind: fake.FaultStatus, Status: 429, On: fake.OnResolve, Times: 2, RetryAfter: 9}, waits: []time.Duration{9 * time.Second, 9 * time.Second}},
		"Retry-After of a 503":    {fault: fake.Fault{Kind: fake.FaultStatus, Status: 503, On: fake.OnResolve, Times: 1, RetryAfter: 4}, waits: []time.Duration{4 * time.Second}},
		"a fresh URL at once":     {fault: fake.Fault{Kind: fake.FaultExpired, Times: 1}, waits: []time.Duration{}},
		"cut":                     {fault: fake.Fault{Kind: fake.FaultCut, Path: weights, Times: 2, After: 100}},
		"cut in every attempt":    {fault: fake.Fault{Kind: fake.FaultCut, Path: weights, After: 5000}},
		"stalls once":             {fault: fake.Fault{Kind: fake.FaultStall, Path: weights, Times: 1}},
		"the CDN is busy":         {fault: fake.Fault{Kind: fake.FaultStatus, Status: 500, On: fake.OnCDN, Times: 2}},
		"whole file for a range":  {fault: fake.Fault{Kind: fake.FaultFull}},
		"cut before any progress": {fault: fake.Fault{Kind: fake.FaultCut, Path: weights}, fails: true, class: hub.Transient},
		"busy for ever":           {fault: fake.Fault{Kind: fake.FaultStatus, Status: 503, On: fake.OnResolve}, fails: true, class: hub.Transient},
		"never a URL that works":  {fault: fake.Fault{Kind: fake.FaultExpired}, fails: true, class: hub.Expired},
		"always limited":          {fault: fake.Fault{Kind: fake.FaultStatus, Status: 429, On: fake.OnResolve}, fails: true, class: hub.RateLimited},
		"permanent at once":       {fault: fake.Fault{Kind: fake.FaultStatus, Status: 403, On: fake.OnResolve}, waits: []time.Duration{}, fails: true, class: hub.Forbidden},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server, _, clock := start(t, fake.Options{}, "")
			client := client(t, hub.Options{Endpoint: server.URL, Now: clock.Now, Wait: clock.Wait, Attempts: 3, Stall: 200 * time.Millisecond})
			commit, _ := server.Commit(repo, "main")
			files, err := client.List(t.Context(), repo, commit)
			if err != nil {
				t.Fatal(err)
			}
			file := find(t, files, weights)
			server.Inject(test.fault)
			whole := make([]byte, file.Size)
			buffer := make([]byte, 200_000)
			err = client.Open(repo, commit, file).Read(t.Context(), 300_000, buffer)
			if (err != nil) != test.fails || test.fails && classOf(err) != test.class {
				t.Fatalf("got %v (class %d)", err, classOf(err))
			}
			if test.waits != nil {
				if diff := cmp.Diff(test.waits, append([]time.Duration{}, clock.waits...)); diff != "" {
					t.Errorf("waits (-want +got):\n%s", diff)
				}
			}
			if err != nil {
				return
			}
			server.Clear()
			if err := client.Open(repo, commit, file).Read(t.Context(), 0, whole); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(buffer, whole[300_000:500_000]) {
				t.Error("the range has wrong bytes")
			}
		})
	}
}

// All requests stand back once the Hub says that the window is used up.
func TestWindowIsHeld(t *testing.T) {
	server, client, clock := start(t, fake.Options{Limits: fake.Limits{API: 2, Window: 5 * time.Minute}}, "")
	for range 5 {
		if _, err := client.Resolve(t.Context(), repo, "main"); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]time.Duration{301 * time.Second, 301 * time.Second}, clock.waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	if n := server.Stats().Limited; n != 0 {
		t.Errorf("%d requests were refused", n)
	}
	if client.Limited() != 602*time.Second {
		t.Errorf("limited for %s", client.Limited())
	}
}

func TestClasses(t *testing.T) {
	tests := map[string]struct {
		model    fake.Model
		token    string
		revision string
		want     hub.Class
	}{
		"no revision":        {revision: "v1", want: hub.NoRevision},
		"gated":              {model: fake.Model{Gated: true}, want: hub.Gated},
		"gated, logged in":   {model: fake.Model{Gated: true}, token: "hf_known", want: hub.Gated},
		"private":            {model: fake.Model{Private: true}, want: hub.NoRepository},
		"private, logged in": {model: fake.Model{Private: true}, token: "hf_known", want: hub.NoRepository},
		"bad token":          {token: "hf_unknown", want: hub.BadToken},
		"disabled":           {model: fake.Model{Disabled: true}, want: hub.Disabled},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.model.Name = repo
			server, client, clock := start(t, fake.Options{Models: []fake.Model{test.model}, Tokens: []fake.Token{{Value: "hf_known"}}}, test.token)
			if test.revision == "" {
				test.revision = "main"
			}
			revision, err := client.Resolve(t.Context(), repo, test.revision)
			if err == nil {
				err = client.Open(repo, revision.Commit, hub.File{Path: "config.json"}).Probe(t.Context())
			}
			if classOf(err) != test.want || len(clock.waits) > 0 {
				t.Errorf("got %v (class %d) after %v, want class %d", err, classOf(err), clock.waits, test.want)
			}
			if strings.Contains(fmt.Sprint(err), "hf_") {
				t.Errorf("the token is in the message: %v", err)
			}
			if n := server.Stats().CDNTokens; n != 0 {
				t.Errorf("the token went to the CDN %d times", n)
			}
		})
	}
}
