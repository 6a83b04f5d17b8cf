package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine"
)

// jumpClock is a clock on which waiting takes no real time: a timer moves the clock and fires at once.
type jumpClock struct {
	mu  sync.Mutex
	now time.Time
}

func newJumpClock() *jumpClock { return &jumpClock{now: time.Unix(1_700_000_000, 0)} }

func (c *jumpClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *jumpClock) Timer(d time.Duration) (<-chan time.Time, func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	fired := make(chan time.Time, 1)
	fired <- c.now
	return fired, func() bool { return false }
}

// start runs an engine behind a real server. Without a clock of its own it lives on a jumpClock, so that nothing
// depends on how fast the machine is.
func start(t *testing.T, c engine.Config) (*engine.Engine, string) {
	t.Helper()
	if c.Clock == nil {
		c.Clock = newJumpClock()
	}
	e, err := engine.New(c)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(e)
	t.Cleanup(func() {
		// The engine first: handlers may be waiting for it.
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
	})
	return e, server.URL
}

// reply is an answer read to its end.
type reply struct {
	status int
	header http.Header
	body   string
	err    error // of reading the body
}

func do(t *testing.T, method, url, body string, header ...string) reply {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return reply{err: err}
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, response.Header, string(b), err}
}

func post(t *testing.T, url, body string, header ...string) reply {
	t.Helper()
	r := do(t, http.MethodPost, url, body, header...)
	if r.err != nil {
		t.Fatalf("post %s: %v", url, r.err)
	}
	return r
}

func decode[T any](t *testing.T, body string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("parse %q: %v", body, err)
	}
	return v
}

func TestNewRefuses(t *testing.T) {
	for name, change := range map[string]func(*engine.Config){
		"negative speed": func(c *engine.Config) { c.Speed = -1 },
		"no memory": func(c *engine.Config) {
			c.Model.NumBlocks = 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			first, _ := start(t, engine.Config{})
			c := first.Config()
			change(&c)
			if e, err := engine.New(c); err == nil {
				_ = e.Close()
				t.Error("started")
			}
		})
	}
}

func TestCloseBreaksOffAnswers(t *testing.T) {
	virtual(t, engine.Config{Clock: frozenClock{}}, func(t *testing.T, e *engine.Engine, client *http.Client) {
		failed := make(chan error, 1)
		go func() { failed <- patience(t, client, distinct(1, 16, 5)) }()
		synctest.Wait()
		if e.Running() != 1 || e.Waiting() != 0 {
			t.Errorf("running %d, waiting %d", e.Running(), e.Waiting())
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-failed; err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the answer ended with %v", err)
		}
		if got := e.State(); got != (engine.State{}) {
			t.Errorf("state after close: %+v", got)
		}
	})
}

// frozenClock never lets a step end.
type frozenClock struct{}

func (frozenClock) Now() time.Time { return time.Unix(1_700_000_000, 0) }

func (frozenClock) Timer(time.Duration) (<-chan time.Time, func() bool) {
	return make(chan time.Time), func() bool { return true }
}

func TestStart(t *testing.T) {
	s, err := engine.Start(t.Context(), engine.Config{Speed: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if got := post(t, s.URL+"/v1/completions", distinct(1, 10, 2)); got.status != http.StatusOK {
		t.Errorf("status %d", got.status)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if got := do(t, http.MethodGet, s.URL+"/health", ""); got.err == nil {
		t.Error("answers after close")
	}
}

// The cost of one streamed chunk, client included, when nothing waits for time.
func BenchmarkStream(b *testing.B) {
	const tokens = 1000
	s, err := engine.Start(b.Context(), engine.Config{Clock: newJumpClock(), NaturalLength: -1})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	body := distinct(1, 1024, tokens)
	for b.Loop() {
		response, err := http.Post(s.URL+"/v1/completions", "application/json", strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			b.Fatal(err)
		}
		response.Body.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*tokens), "ns/chunk")
}
