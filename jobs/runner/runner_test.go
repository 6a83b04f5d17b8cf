package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// execute runs `inference-job ARGS` and returns its events, its termination
// message and its exit code.
func execute(t *testing.T, ctx context.Context, args []string, environ map[string]string) (output string, events []record.Event, last record.Event, code int) {
	t.Helper()
	var stdout bytes.Buffer
	file := filepath.Join(t.TempDir(), "termination-log")
	code = Execute(ctx, args, Process{Stdout: &stdout, Getenv: func(name string) string { return environ[name] }, TerminationMessage: file, Version: "v1.2.3"})
	output = stdout.String()
	for line := range strings.Lines(output) {
		event, ok := record.ParseEvent([]byte(line))
		if !ok {
			t.Errorf("not an event: %s", line)
		}
		events = append(events, event)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &last); err != nil {
		t.Errorf("the termination message is not an event: %v: %s", err, data)
	}
	return output, events, last, code
}

func TestExecuteRefuses(t *testing.T) {
	const hint = "inference-job is started by `kubectl inference sync-model | bench | rollout`"
	sync := `{"apiVersion":"kubectl-inference.io/v1alpha1","kind":"SyncPlan","repo":"bad"}`
	bench := `{"apiVersion":"kubectl-inference.io/v1alpha1","kind":"BenchPlan"}`
	rollout := `{"apiVersion":"kubectl-inference.io/v1alpha1","kind":"RolloutPlan","name":"web"}`
	for name, test := range map[string]struct {
		args       []string
		plan, want string
		hint       string
	}{
		"no command":          {nil, sync, "read arguments: one command is needed: sync, verify, prune, bench or rollout", hint},
		"two commands":        {[]string{"sync", "bench"}, sync, "read arguments: one command is needed: sync, verify, prune, bench or rollout", hint},
		"an unknown command":  {[]string{"tune"}, sync, `read arguments: "tune" is not a command`, hint},
		"no plan":             {[]string{"sync"}, "", "read plan: INFERENCE_PLAN is not set", hint},
		"the plan of another": {[]string{"sync"}, bench, `read SyncPlan: the document is of kind "BenchPlan"`, ""},
		"not JSON":            {[]string{"bench"}, "{", "read BenchPlan: not a JSON document: unexpected end of JSON input", ""},
		"a newer version": {[]string{"rollout"}, `{"apiVersion":"kubectl-inference.io/v9","kind":"RolloutPlan"}`,
			`read RolloutPlan: version "kubectl-inference.io/v9" is not known, this build reads kubectl-inference.io/v1alpha1`, "use the kubectl-inference release that wrote it, or a newer one"},
		"a plan that cannot work": {[]string{"sync"}, sync, `read plan: model "bad" is not OWNER/NAME`, "name the model as on the Hub, for example Qwen/Qwen2.5-0.5B-Instruct"},
		"bench is not in a Job":   {[]string{"bench"}, bench, "save report: this is not a Job of the plugin", "start it with `kubectl inference bench`"},
		"rollout is not in a Job": {[]string{"rollout"}, rollout, "roll out web: this is not a Job of the plugin", "start it with `kubectl inference rollout`"},
	} {
		t.Run(name, func(t *testing.T) {
			_, events, last, code := execute(t, t.Context(), test.args, map[string]string{PlanEnv: test.plan})
			if code != int(failure.Usage) || len(events) != 1 {
				t.Fatalf("exit code %d, events %+v", code, events)
			}
			want := record.Event{Level: record.Problem, Name: record.EventFailed, Message: test.want, Hint: test.hint, ExitCode: 2}
			for _, event := range []record.Event{events[0], last} {
				event.Time = time.Time{}
				if diff := cmp.Diff(want, event); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestVersion(t *testing.T) {
	var stdout bytes.Buffer
	for _, word := range []string{"version", "--version"} {
		stdout.Reset()
		if code := Execute(t.Context(), []string{word}, Process{Stdout: &stdout, Version: "v1.2.3"}); code != 0 || stdout.String() != "inference-job v1.2.3\n" {
			t.Errorf("%s: exit code %d: %s", word, code, stdout.String())
		}
	}
}

// TestNoSecretIsPrinted: whatever a Hub answers, the token is not told.
func TestNoSecretIsPrinted(t *testing.T) {
	const token = "hf_very-secret-token"
	sent := false
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		sent = sent || request.Header.Get("Authorization") == "Bearer "+token
		w.WriteHeader(http.StatusForbidden)
	}))
	defer hub.Close()
	plan := fmt.Sprintf(`{"apiVersion":"kubectl-inference.io/v1alpha1","kind":"SyncPlan","repo":"a/b","revision":"main","hub_endpoint":%q,"destination":"s3://models/a","s3_endpoint":%q,"s3_region":"x"}`, hub.URL, hub.URL)
	output, _, last, code := execute(t, t.Context(), []string{"sync"}, map[string]string{PlanEnv: plan, "HF_TOKEN": token})
	if !sent || code == 0 {
		t.Errorf("token sent %v, exit code %d", sent, code)
	}
	if strings.Contains(output, token) || strings.Contains(last.Message+last.Hint, token) {
		t.Errorf("the token is told: %s", output)
	}
}

// TestStopped: a signal ends a run that is at work, and is its one reason.
func TestStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	hub := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		stop()
		<-request.Context().Done()
	}))
	defer hub.Close()
	plan := fmt.Sprintf(`{"apiVersion":"kubectl-inference.io/v1alpha1","kind":"SyncPlan","repo":"a/b","revision":"main","hub_endpoint":%q,"destination":"s3://models/a","s3_endpoint":%q,"s3_region":"x"}`, hub.URL, hub.URL)
	_, events, last, code := execute(t, ctx, []string{"sync"}, map[string]string{PlanEnv: plan})
	if code != int(failure.Interrupted) || last.Message != "stopped by a signal" || last.ExitCode != code || events[len(events)-1].Name != record.EventFailed {
		t.Errorf("exit code %d, last words %+v", code, last)
	}
}

func TestStoppedIsNotEveryCancellation(t *testing.T) {
	cancelled := fmt.Errorf("put object: %w", context.Canceled)
	if err := stopped(t.Context(), cancelled); !errors.Is(err, cancelled) {
		t.Errorf("a request that was given up is taken for a signal: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	other := errors.New("disk full")
	if err := stopped(ctx, other); !errors.Is(err, other) {
		t.Errorf("another error is hidden: %v", err)
	}
	if err := stopped(ctx, nil); err != nil {
		t.Error(err)
	}
}

func TestEventTimesIncrease(t *testing.T) {
	var stdout bytes.Buffer
	emit := emitter(&stdout)
	fixed := time.Date(2026, 7, 1, 14, 0, 0, 0, time.FixedZone("CEST", 7200))
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 200 {
				event := record.Event{Name: "case", Message: fmt.Sprint(i, j)}
				if j%2 == 0 {
					event.Time = fixed
				}
				emit(event)
			}
		})
	}
	group.Wait()
	var last time.Time
	lines := 0
	for line := range strings.Lines(stdout.String()) {
		event, ok := record.ParseEvent([]byte(line))
		if !ok || !event.Time.After(last) || event.Time.Location() != time.UTC || event.Level != record.Info {
			t.Fatalf("line %d after %v: %s", lines, last, line)
		}
		last = event.Time
		lines++
	}
	if lines != 8*200 {
		t.Errorf("%d lines", lines)
	}
}

func TestEventWithNumbersThatJSONLacks(t *testing.T) {
	var stdout bytes.Buffer
	nan := math.NaN()
	emitter(&stdout)(record.Event{Name: "case", Message: "mean unknown", Done: &nan, Fields: map[string]any{"mean": math.Inf(1)}})
	if event, ok := record.ParseEvent(stdout.Bytes()); !ok || event.Message != "mean unknown" {
		t.Errorf("the event is lost: %s", stdout.String())
	}
}

func TestOutcome(t *testing.T) {
	type document struct {
		Mean float64 `json:"mean"`
	}
	for name, test := range map[string]struct {
		result any
		err    error
		want   record.Event
	}{
		"done":             {document{1}, nil, record.Event{Level: record.Info, Name: record.EventDone, Message: "done", Result: json.RawMessage(`{"mean":1}`)}},
		"failed":           {nil, failure.New(failure.Denied, "ask", "put\n object: denied"), record.Event{Level: record.Problem, Name: record.EventFailed, Message: "put object: denied", Hint: "ask", ExitCode: 4}},
		"the answer is no": {document{2}, failure.New(failure.Differs, "", "missed"), record.Event{Level: record.Problem, Name: record.EventFailed, Message: "missed", ExitCode: 3, Result: json.RawMessage(`{"mean":2}`)}},
		"no JSON":          {document{math.NaN()}, nil, record.Event{Level: record.Problem, Name: record.EventFailed, Message: "write result: json: unsupported value: NaN", ExitCode: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			got := outcome(test.result, test.err)
			got.Time = time.Time{}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLastWordsFit: Kubernetes cuts a termination message at 4096 bytes, and a
// cut one is no JSON.
func TestLastWordsFit(t *testing.T) {
	for name, test := range map[string]struct {
		event      record.Event
		wantResult bool
	}{
		"small":          {record.Event{Message: "done", Result: json.RawMessage(`{"a":1}`)}, true},
		"large result":   {record.Event{Message: "done", Result: json.RawMessage(`"` + strings.Repeat("x", 5000) + `"`)}, false},
		"large message":  {record.Event{Message: strings.Repeat("<é\U0001F600>", 3000), Hint: "look"}, false},
		"large hint":     {record.Event{Message: "failed", Hint: strings.Repeat("&", 9000)}, false},
		"large in both":  {record.Event{Message: strings.Repeat("m", 9000), Hint: strings.Repeat("h", 9000)}, false},
		"no valid UTF-8": {record.Event{Message: strings.Repeat("\xff", 9000)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "log")
			test.event.Name, test.event.ExitCode = record.EventFailed, 5
			sayLast(file, test.event, nil)
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var event record.Event
			if err := json.Unmarshal(data, &event); err != nil || len(data) > 4096 {
				t.Fatalf("%d bytes, error %v", len(data), err)
			}
			if event.Name != record.EventFailed || event.ExitCode != 5 || event.Message == "" || (event.Result != nil) != test.wantResult {
				t.Errorf("event %+v", event)
			}
		})
	}
	sayLast("", record.Event{}, nil)
	sayLast(filepath.Join(t.TempDir(), "no", "such", "folder"), record.Event{}, nil)
}

// TestLongResultIsCutShort: a model of thousands of files still leaves its
// result where it outlives the log.
func TestLongResultIsCutShort(t *testing.T) {
	result := record.SyncResult{TypeMeta: record.Meta(record.KindSyncResult), Repo: "owner/name", ManifestSHA256: strings.Repeat("a", 64)}
	for range 1000 {
		result.Files = append(result.Files, record.SyncFilePlan{Path: "model.safetensors", Size: 1 << 30, Action: record.ActionUpload, Reason: "absent"})
	}
	file := filepath.Join(t.TempDir(), "log")
	sayLast(file, outcome(result, nil), result)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var event record.Event
	var kept record.SyncResult
	if err := json.Unmarshal(data, &event); err != nil || len(data) > 4096 {
		t.Fatalf("%d bytes, error %v", len(data), err)
	}
	if err := record.Decode(event.Result, record.KindSyncResult, &kept); err != nil || kept.ManifestSHA256 != result.ManifestSHA256 || !kept.FilesOmitted || len(result.Files) != 1000 {
		t.Errorf("kept %+v, error %v", kept, err)
	}
}
