package hub_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/test/fakes/hub"
)

func TestFaults(t *testing.T) {
	ranged := map[string]string{"Range": "bytes=1000-1999"}
	tests := map[string]struct {
		fault hub.Fault
		want  string
	}{
		"none":      {want: "206 1000 right"},
		"cut":       {fault: hub.Fault{Kind: hub.FaultCut, After: 10}, want: "206 11 cut"},
		"corrupt":   {fault: hub.Fault{Kind: hub.FaultCorrupt, After: 1500}, want: "206 1000 wrong"},
		"full":      {fault: hub.Fault{Kind: hub.FaultFull}, want: "200"},
		"expired":   {fault: hub.Fault{Kind: hub.FaultExpired}, want: "403"},
		"status":    {fault: hub.Fault{Kind: hub.FaultStatus, Status: 503, On: hub.OnCDN, RetryAfter: 3}, want: "503"},
		"slow":      {fault: hub.Fault{Kind: hub.FaultSlow, After: 1 << 20}, want: "206 1000 right"},
		"elsewhere": {fault: hub.Fault{Kind: hub.FaultCut, Path: "config.json"}, want: "206 1000 right"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := start(t, hub.Options{})
			address := location(t, server)
			_, right := ask(t, http.MethodGet, address, ranged)
			if test.fault.Kind != "" {
				test.fault.Times = 1
				server.Inject(test.fault)
			}
			response, body := ask(t, http.MethodGet, address, ranged)
			got := fmt.Sprint(response.StatusCode)
			if response.StatusCode == http.StatusPartialContent {
				state := "wrong"
				switch {
				case string(body) == string(right):
					state = "right"
				case strings.HasSuffix(string(body), "!") && len(body) < len(right):
					state = "cut"
				}
				got += fmt.Sprintf(" %d %s", len(body), state)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			// Times is used up.
			if test.fault.Path == "" {
				if _, body := ask(t, http.MethodGet, address, ranged); string(body) != string(right) {
					t.Error("the fault did not end")
				}
			}
		})
	}
}

func TestGzipUnlessIdentity(t *testing.T) {
	server := start(t, hub.Options{})
	address := server.URL + "/" + repo + "/resolve/main/config.json"
	_, plain := ask(t, http.MethodGet, address, nil)
	response, packed := ask(t, http.MethodGet, address, map[string]string{"Accept-Encoding": "gzip", "Range": "bytes=5-9"})
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Encoding") != "gzip" || response.ContentLength >= 0 {
		t.Errorf("got %d, %v", response.StatusCode, response.Header)
	}
	reader, err := gzip.NewReader(strings.NewReader(string(packed)))
	if err != nil {
		t.Fatal(err)
	}
	if unpacked, err := io.ReadAll(reader); err != nil || string(unpacked) != string(plain) {
		t.Errorf("unpacked %q, %v", unpacked, err)
	}
}

func TestRateLimit(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	server := start(t, hub.Options{Limits: hub.Limits{API: 2, Window: time.Minute}, Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }})
	get := func() (int, string) {
		response, _ := ask(t, http.MethodGet, server.URL+"/api/models/"+repo, nil)
		return response.StatusCode, response.Header.Get("RateLimit")
	}
	for i, want := range []string{`200 "api";r=1;t=60`, `200 "api";r=0;t=60`, `429 "api";r=0;t=60`} {
		status, header := get()
		if got := fmt.Sprintf("%d %s", status, header); got != want {
			t.Errorf("request %d: got %s, want %s", i, got, want)
		}
	}
	mu.Lock()
	now = now.Add(time.Minute)
	mu.Unlock()
	if status, _ := get(); status != http.StatusOK {
		t.Errorf("in the next window: status %d", status)
	}
	if response, _ := ask(t, http.MethodGet, server.URL+"/"+repo+"/resolve/main/config.json", nil); response.Header.Get("RateLimit") != "" {
		t.Error("the other bucket is limited too")
	}
}

func TestAdmin(t *testing.T) {
	server := start(t, hub.Options{})
	post := func(body string) int {
		response, err := http.Post(server.URL+"/_fake/faults", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	}
	file := server.URL + "/" + repo + "/resolve/main/config.json"
	if status := post(`{"kind":"status","status":418}`); status != http.StatusNoContent {
		t.Errorf("inject: status %d", status)
	}
	if response, _ := ask(t, http.MethodGet, file, nil); response.StatusCode != 418 {
		t.Errorf("with the fault: %d", response.StatusCode)
	}
	if response, _ := ask(t, http.MethodDelete, server.URL+"/_fake/faults", nil); response.StatusCode != http.StatusNoContent {
		t.Errorf("clear: status %d", response.StatusCode)
	}
	if response, _ := ask(t, http.MethodGet, file, nil); response.StatusCode != 200 {
		t.Errorf("without: %d", response.StatusCode)
	}
	for _, body := range []string{``, `{}`, `{"kind":"cut","nonsense":1}`} {
		if status := post(body); status != http.StatusBadRequest {
			t.Errorf("%q: status %d", body, status)
		}
	}
	var stats hub.Stats
	if _, body := ask(t, http.MethodGet, server.URL+"/_fake/stats", nil); json.Unmarshal(body, &stats) != nil || stats.ResolveRequests != 2 {
		t.Errorf("stats: %s", body)
	}
	commit, _ := server.Commit(repo, "main")
	if _, body := ask(t, http.MethodGet, server.URL+"/_fake/commits", nil); !strings.Contains(string(body), commit) {
		t.Errorf("commits: %s", body)
	}
	for _, origin := range []string{server.URL, server.CDN} {
		if response, body := ask(t, http.MethodGet, origin+"/healthz", nil); response.StatusCode != 200 || string(body) != "ok\n" {
			t.Errorf("healthz: %d %q", response.StatusCode, body)
		}
	}
}
