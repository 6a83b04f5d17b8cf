package process_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/lab/process"
)

// shell describes a server that is a shell script.
func shell(script string, ready func(context.Context) error) process.Spec {
	return process.Spec{Name: "server", Path: "/bin/sh", Args: []string{"-c", script}, Ready: ready}
}

func TestWaitUntilReady(t *testing.T) {
	log := filepath.Join(t.TempDir(), "server.log")
	p, err := process.Start(t.Context(), shell("echo serving; exec sleep 60", func(context.Context) error {
		data, err := os.ReadFile(log)
		if err == nil && !strings.Contains(string(data), "serving") {
			err = errors.New("not serving")
		}
		return err
	}), log)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if pid, starts := p.PID(); pid == 0 || starts != 1 {
		t.Errorf("pid %d, starts %d", pid, starts)
	}
}

// A server that ends at once is reported at once, with its last words, however
// much time there is.
func TestWaitTellsWhyItEnded(t *testing.T) {
	log := filepath.Join(t.TempDir(), "server.log")
	never := func(context.Context) error { return errors.New("connection refused") }
	p, err := process.Start(t.Context(), shell("echo unknown flag --frobnicate >&2; exit 3", never), log)
	if err != nil {
		t.Fatal(err)
	}
	err = p.Wait(t.Context())
	if err == nil {
		t.Fatal("a server that ended is ready")
	}
	for _, want := range []string{"wait for server", "exit status 3"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
	if tail := process.TailOf(err); tail != "  unknown flag --frobnicate" {
		t.Errorf("log %q", tail)
	}
	if failure.HintOf(err) == "" {
		t.Error("no hint")
	}
}

func TestStartedAgain(t *testing.T) {
	dir := t.TempDir()
	p, err := process.Start(t.Context(), shell("echo run >> "+dir+"/runs", nil), filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	err = process.Poll(t.Context(), func(context.Context) error {
		if _, starts := p.PID(); starts < 2 {
			return errors.New("not started again")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPollReportsTheLastAnswer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var calls int
	refused := errors.New("connection refused")
	err := process.Poll(ctx, func(context.Context) error {
		if calls++; calls == 3 {
			cancel()
			return ctx.Err()
		}
		return refused
	})
	if !errors.Is(err, refused) || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestHTTP(t *testing.T) {
	var healthy atomic.Bool
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !healthy.Load() {
			http.Error(w, "etcd not reachable", http.StatusServiceUnavailable)
		}
	}))
	defer srv.Close()
	probe := process.HTTP(srv.URL, nil)
	if err := probe(t.Context()); err == nil || !strings.Contains(err.Error(), "etcd not reachable") {
		t.Errorf("unhealthy: error %v", err)
	}
	healthy.Store(true)
	if err := probe(t.Context()); err != nil {
		t.Errorf("healthy: %v", err)
	}
}

func TestTail(t *testing.T) {
	tests := map[string]struct{ content, want string }{
		"empty": {"", ""},
		"short": {"a\nb\n", "  a\n  b"},
		"long":  {strings.Repeat("line\n", 50000) + "x\ny\nz\n", "  x\n  y\n  z"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(path, []byte(tt.content), 0o644); err != nil {
				t.Fatal(err)
			}
			if got := process.Tail(path, 3); got != tt.want {
				t.Errorf("tail %q, want %q", got, tt.want)
			}
		})
	}
	if got := process.Tail("/nonexistent", 3); got != "" {
		t.Errorf("tail of no file: %q", got)
	}
}
