//go:build linux

package main

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/kubectl-inference/kubectl-inference/jobs/sync"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/hub"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/hub/hubtest"
)

// A sync into the sink is a whole one: the sink passes the probe of stores, and
// a second run finds all complete.
func TestSinkIsAStore(t *testing.T) {
	server := hubtest.Start(t, hub.Options{Models: []hub.Model{{Name: model, Bytes: 34 << 20}}})
	commit, _ := server.Commit(model, "main")
	storage := newSink()
	front := httptest.NewServer(storage)
	defer front.Close()
	plan := syncPlan(served{URL: server.URL, Commit: commit}, front.URL, "bench")
	deps := sync.Deps{Credentials: credentials.NewStaticCredentialsProvider(accessKey, secretKey, ""), Attempts: 1}
	for _, complete := range []bool{false, true} {
		server.ResetStats()
		result, err := sync.Run(t.Context(), plan, deps)
		if err != nil || result.AlreadyComplete != complete || len(result.Warnings) > 0 || result.Total.Bytes < 34<<20 {
			t.Fatalf("already complete %v, warnings %q, %v", result.AlreadyComplete, result.Warnings, err)
		}
		if sent := server.Stats().FileBytes; complete != (sent == 0) {
			t.Errorf("already complete %v, the Hub sent %d bytes", complete, sent)
		}
	}
	kept := 0
	for _, object := range storage.objects {
		kept += len(object.data)
	}
	if kept == 0 || kept > 1<<20 {
		t.Errorf("the sink keeps %d bytes", kept)
	}
}

func TestUnchunk(t *testing.T) {
	for name, test := range map[string]struct{ body, want string }{
		"one chunk": {"5\r\nhello\r\n0\r\nx-amz-checksum-sha256:abc\r\n\r\n", "hello"},
		"two":       {"2;chunk-signature=x\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", "hello"},
		"nothing":   {"0\r\n\r\n", ""},
	} {
		if got, err := unchunk([]byte(test.body)); err != nil || string(got) != test.want {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	if _, err := unchunk([]byte("ff\r\nshort")); err == nil {
		t.Error("a body that breaks off is no error")
	}
}

// A bar that cannot be judged is not missed, and one that can is.
func TestBars(t *testing.T) {
	for name, test := range map[string]struct {
		others, cpu float64
		missed      int
		want        string
	}{
		"good":         {0.1, 1, 0, "| at least 2.3 times faster than a | 2.50 | met |"},
		"busy":         {1.5, 1, 0, "| at least 2.3 times faster than a | 2.50 | met, on a busy machine |"},
		"too much CPU": {1.5, 5, 1, "| client CPU per GB at most 0.30 of a's | 0.50 | **missed** |"},
	} {
		r := &results{bytes: 1e9, goSHA: []float64{1e9}, runs: map[string][]usage{
			"a":        {{wall: 10, cpu: 10, others: test.others}},
			ours:       {{wall: 4, cpu: test.cpu, mib: 300, others: test.others}},
			limitPut:   {{wall: 3, others: test.others}},
			limitFetch: {{wall: 1, others: test.others}},
		}}
		lines, missed := r.bars("a")
		if missed != test.missed || !strings.Contains(lines, test.want) {
			t.Errorf("%s: %d missed\n%s", name, missed, lines)
		}
	}
}
