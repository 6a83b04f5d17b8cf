package metrics

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// story is what a sync of three files tells: one was there, one came damaged
// once, and a file that is read again takes its bytes back.
func story(t *testing.T) []record.Event {
	t.Helper()
	result, err := json.Marshal(record.SyncResult{TypeMeta: record.Meta(record.KindSyncResult), ManifestSHA256: strings.Repeat("a", 64), DownloadedBytes: 400, RateLimitSeconds: 7, DurationSeconds: 12})
	if err != nil {
		t.Fatal(err)
	}
	progress := func(done, downloaded float64) record.Event {
		return record.Event{Name: record.EventProgress, Done: &done, Unit: "bytes", Fields: map[string]any{"downloaded_bytes": int64(downloaded), "rate_limit_seconds": 7.0}}
	}
	return []record.Event{
		{Name: record.EventPlan, Fields: map[string]any{"present": record.FileCount{Files: 1, Bytes: 50}, "upload": record.FileCount{Files: 2, Bytes: 300}, "skipped": record.FileCount{Files: 4}}},
		progress(100, 100),
		{Name: record.EventRetry, Fields: map[string]any{"peer": "hub", "status": 429}},
		{Name: record.EventRetry, Fields: map[string]any{"peer": "store", "status": 503}},
		{Name: record.EventRetry, Fields: map[string]any{"digest_mismatch": true}},
		progress(50, 250),
		{Name: record.EventFile}, {Name: record.EventFile},
		progress(300, 400),
		{Name: record.EventDone, Time: time.Unix(1_800_000_000, 0), Result: result},
	}
}

var series = regexp.MustCompile(`(?m)^sync_model_.*$`)

func TestServe(t *testing.T) {
	meter := NewSync()
	address, err := meter.Serve(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range story(t) {
		meter.Event(event)
	}
	response, err := http.Get("http://" + address.String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`sync_model_bytes_total{direction="downloaded"} 400`,
		`sync_model_bytes_total{direction="verified"} 300`,
		`sync_model_digest_mismatch_total 1`,
		`sync_model_duration_seconds 12`,
		`sync_model_files_total{result="present"} 1`,
		`sync_model_files_total{result="skipped"} 4`,
		`sync_model_files_total{result="uploaded"} 2`,
		`sync_model_last_success_timestamp_seconds 1.8e+09`,
		`sync_model_planned_bytes{state="present"} 50`,
		`sync_model_planned_bytes{state="upload"} 300`,
		`sync_model_ratelimit_wait_seconds_total 7`,
		`sync_model_retries_total{code="429",peer="hub"} 1`,
		`sync_model_retries_total{code="503",peer="store"} 1`,
	}
	if diff := cmp.Diff(want, series.FindAllString(string(body), -1)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := NewSync().Serve(t.Context(), address.String()); err == nil {
		t.Error("a port that is taken is served")
	}
}

func TestPush(t *testing.T) {
	var paths []string
	status := http.StatusOK
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		paths = append(paths, request.Method+" "+request.URL.Path)
		w.WriteHeader(status)
	}))
	defer gateway.Close()
	if err := NewSync().Push(t.Context(), gateway.URL, "sync-model", "owner/name", 2); err != nil {
		t.Fatal(err)
	}
	// A slash in a label's value is sent in base64.
	want := []string{"PUT /metrics/job/sync-model/model@base64/b3duZXIvbmFtZQ/worker/2", "PUT /metrics/job/sync-model/worker/2/model@base64/b3duZXIvbmFtZQ"}
	if len(paths) != 1 || !slices.Contains(want, paths[0]) {
		t.Errorf("pushed to %v", paths)
	}
	status = http.StatusBadGateway
	if err := NewSync().Push(t.Context(), gateway.URL, "sync-model", "owner/name", 2); err == nil || !strings.HasPrefix(err.Error(), "push metrics: ") {
		t.Errorf("a gateway that refuses: %v", err)
	}
}
