package explain

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

func TestParseAt(t *testing.T) {
	local := time.Local
	time.Local = time.FixedZone("east", 3600)
	defer func() { time.Local = local }()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		want time.Time
		err  string
	}{
		"12:03":                     {want: now.Add(-57 * time.Minute)},
		"12:03:30":                  {want: now.Add(-56*time.Minute - 30*time.Second)},
		"13:01":                     {want: now.Add(time.Minute - 24*time.Hour)},
		"-10m":                      {want: now.Add(-10 * time.Minute)},
		"2026-11-30T11:00:00Z":      {want: now.Add(-time.Hour)},
		"2026-11-30T11:00:00+01:00": {want: now.Add(-2 * time.Hour)},
		"2026-11-30T12:00:01Z":      {err: "is in the future"},
		"10m":                       {err: "is no time"},
		"25:00":                     {err: "is no time"},
		"yesterday":                 {err: "is no time"},
	}
	for text, test := range tests {
		t.Run(text, func(t *testing.T) {
			got, err := parseAt(text, now)
			if test.err != "" {
				if failure.KindOf(err) != failure.Usage || !strings.Contains(err.Error(), test.err) || failure.HintOf(err) == "" {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || !got.Equal(test.want) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestAtRefuses(t *testing.T) {
	for _, args := range [][]string{
		{"--at", "-10m"}, {"-A", "--at", "-10m"}, {"so/fine", "--at", "-10m", "--watch"}, {"so/fine", "--at", "-10m", "--fresh"},
		{"so/fine", "--at", "-10m", "--external-metrics"}, {"so/fine", "--at", "-10m", "--record", "x"}, {"so/fine", "--at", "soon"},
		{"so/fine", "--prometheus", "http://a:9090"}, {"so/fine", "--at", "-1m", "--prometheus", "a:9090"},
		{"so/fine", "--at", "-1m", "--prometheus", "http://me:secret@a:9090"}, {"-f", "testdata/waiting.yaml", "--at", "-1m"},
	} {
		if _, _, err := run(t, "", args...); failure.KindOf(err) != failure.Usage || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v: got %v", args, err)
		}
	}
}

// scrapes answers as a Prometheus that scrapes kube-state-metrics every 15 s:
// the last one before the moment is 5 s old, and found a sync that added.
func scrapes(namespace string, at time.Time, asked *[]string) http.HandlerFunc {
	type sample [2]any
	type series struct {
		Metric map[string]string `json:"metric"`
		Values []sample          `json:"values"`
	}
	last := at.Add(-5 * time.Second).Truncate(time.Millisecond)
	return func(out http.ResponseWriter, r *http.Request) {
		query := r.URL.Query().Get("query")
		*asked = append(*asked, query)
		until, err := time.Parse(time.RFC3339, r.URL.Query().Get("time"))
		if err != nil {
			http.Error(out, err.Error(), http.StatusBadRequest)
			return
		}
		made := func(name string, labels map[string]string, value func(time.Time) string) series {
			one := series{Metric: map[string]string{"__name__": name, "namespace": "monitoring", "exported_namespace": namespace}}
			for key, label := range labels {
				one.Metric[key] = label
			}
			for k := -40; k < 40; k++ {
				if t := last.Add(time.Duration(k) * 15 * time.Second); !t.After(until) {
					one.Values = append(one.Values, sample{float64(t.UnixMilli()) / 1000, value(t)})
				}
			}
			return one
		}
		from := func(moment time.Time, before, after int) func(time.Time) string {
			return func(t time.Time) string {
				if t.Before(moment) {
					return strconv.Itoa(before)
				}
				return strconv.Itoa(after)
			}
		}
		always := func(n int) func(time.Time) string { return from(last, n, n) }
		var result []series
		switch {
		case strings.Contains(query, "horizontalpodautoscaler="):
			result = []series{
				made(seriesCurrent, nil, from(last.Add(time.Second), 2, 4)), made(seriesDesired, nil, from(last, 2, 4)),
				made(seriesMin, nil, always(1)), made(seriesMax, nil, always(4)),
				made(seriesTarget, map[string]string{"metric_name": "s0-prometheus", "metric_target_type": "average"}, from(last, 2, 5)),
			}
		case strings.Contains(query, "deployment="):
			result = []series{made(seriesSpec, nil, from(last.Add(time.Second), 2, 4)), made(seriesReplicas, nil, from(last.Add(time.Second), 2, 4)), made(seriesReady, nil, always(2))}
		case strings.HasPrefix(query, "keda_scaler_metrics_value"):
			result = []series{made("keda_scaler_metrics_value", map[string]string{"metric": "s0-prometheus", "triggerIndex": "0"}, always(10))}
		default:
			fmt.Fprint(out, vector("11"))
			return
		}
		_ = json.NewEncoder(out).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": "matrix", "result": result}})
	}
}

// TestAt: a past sync is explained from what Prometheus scraped, by the same
// model, and compared with the size that was written.
func TestAt(t *testing.T) {
	w := newWorld(t, "past", apiserver.Admin)
	w.addAll(t, []service{steady("fine", 0)})
	// The clock of tests is a minute late: the objects are older than this.
	at := later().Add(-30 * time.Second).Truncate(time.Second)
	var asked []string
	w.prometheus = scrapes(w.namespace, at, &asked)
	before := len(w.seen())
	document := w.explain(t, "so/fine", "--at", at.UTC().Format(time.RFC3339))
	requests := w.seen()
	if n := len(requests) - before - len(asked); n > 12 || n < 1 {
		t.Errorf("%d API requests: %v", n, requests[before:])
	}
	ranges := slices.DeleteFunc(slices.Clone(asked), func(q string) bool { return !strings.HasSuffix(q, "s]") })
	if len(ranges) > 3 || len(asked) != len(ranges)+1 {
		t.Errorf("asked %q", asked)
	}
	if document.AsOf.Source != sourcePrometheus || !document.AsOf.Time.Equal(at.Add(-5*time.Second)) {
		t.Errorf("as of %+v", document.AsOf)
	}
	c := document.Chains[0]
	if d := c.Decision; d == nil || d.From != 2 || d.Desired.Low != 4 || !d.Exact || d.Raw.Low != 5 || !c.Check.Compared || !c.Check.Agrees {
		t.Errorf("got %+v, %+v", c.Decision, c.Check)
	}
	if p := c.Past; p == nil || p.Then == nil || p.Then.Replicas == nil || *p.Then.Replicas != 4 || len(p.Values) != 1 || *p.Values[0].Value != 11 || !strings.HasPrefix(p.Values[0].Note, "KEDA had read 10 by") {
		t.Errorf("got %+v", p)
	}
	stdout, _, err := w.run(t, "so/fine", "--at", at.UTC().Format(time.RFC3339), "--history", "--set", "s0.value=6")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"AS OF " + dateText(at.Add(-5*time.Second)) + ", the last scrape before " + clockText(at), "the size was found at 4 by",
		"s0 queue depth gave 11; KEDA had read 10", "DECISION 2 -> 4: the metrics ask for 5, the maximum is 4", "agrees with the controller: desiredReplicas 4\n", "WHAT IF",
		"which pods ran, and which were Ready, is known by their number only",
	} {
		if !strings.Contains(stdout, line) {
			t.Errorf("%q is missing in\n%s", line, stdout)
		}
	}

	// An edit afterwards is said; what was not scraped is one clear line.
	early := at.Add(-9 * time.Minute)
	w.prometheus = scrapes(w.namespace, early, &asked)
	document = w.explain(t, "so/fine", "--at", early.UTC().Format(time.RFC3339))
	if !slices.ContainsFunc(document.Unread, func(u record.UnreadInput) bool { return strings.Contains(u.Message, "its spec of today is assumed") }) {
		t.Errorf("got %+v", document.Unread)
	}
	_, _, err = w.run(t, "so/fine", "--at", "-24h")
	if failure.KindOf(err) != failure.Failed || !strings.Contains(err.Error(), "not scraped then") {
		t.Errorf("got %v", err)
	}
	w.prometheus = func(out http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(out, `{"status":"success","data":{"resultType":"matrix","result":[]}}`)
	}
	_, _, err = w.run(t, "so/fine", "--at", "-1m")
	if failure.KindOf(err) != failure.Failed || !strings.Contains(err.Error(), "kube-state-metrics is not there") || failure.HintOf(err) == "" {
		t.Errorf("got %v", err)
	}
}

// TestFreshRecalls: what Prometheus scraped bounds what the controller
// remembers of its window.
func TestFreshRecalls(t *testing.T) {
	w := newWorld(t, "recall", apiserver.Admin)
	s := steady("fine", 0)
	s.average = "1"
	s.able = "ScaleDownStabilized"
	w.addAll(t, []service{s})
	var asked []string
	w.prometheus = scrapes(w.namespace, later().Add(10*time.Minute), &asked)
	blind := w.explain(t, "so/fine").Chains[0].Decision
	seen := w.explain(t, "so/fine", "--fresh")
	if got := seen.Chains[0].Decision; blind.Exact || got.Stabilization == nil || len(got.Assumes) == 0 {
		t.Errorf("got %+v, without %+v; %+v", got, blind, seen.Unread)
	}
	if !slices.ContainsFunc(asked, func(q string) bool { return strings.Contains(q, "status_target_metric") }) {
		t.Errorf("asked %q", asked)
	}
}

// TestAtRecordings: the last recording before the moment is explained.
func TestAtRecordings(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile("testdata/waiting.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]string{"a": "2026-11-30T12:00:00Z", "b": "2026-11-30T12:05:00Z", "c": "2026-11-30T12:10:00Z"} {
		sub := filepath.Join(dir, name)
		if err := os.Mkdir(sub, 0o700); err != nil {
			t.Fatal(err)
		}
		about := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"read_at":%q,"namespace":"models","target":"isvc/chat","kubernetes_version":"v1.37","unread":[]}`,
			record.Meta(record.KindScalingRecording).APIVersion, record.KindScalingRecording, at)
		for file, content := range map[string][]byte{recordingFile: []byte(about), objectsFile: data} {
			if err := os.WriteFile(filepath.Join(sub, file), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for at, want := range map[string]string{"2026-11-30T12:07:00Z": "12:05:00", "2026-11-30T12:05:00Z": "12:05:00", "2026-11-30T12:00:01Z": "12:00:00"} {
		got := document(t, "-f", dir, "--at", at)
		if !strings.Contains(got.AsOf.Time.Format(time.RFC3339), want) || got.Chains[0].Decision == nil {
			t.Errorf("%s: as of %v", at, got.AsOf.Time)
		}
	}
	if _, _, err := run(t, "", "-f", dir, "--at", "2026-11-30T11:00:00Z"); failure.KindOf(err) != failure.NotFound || !strings.Contains(failure.HintOf(err), "12:00:00Z") {
		t.Errorf("got %v", err)
	}
	if _, _, err := run(t, "", "-f", t.TempDir(), "--at", "2026-11-30T11:00:00Z"); failure.KindOf(err) != failure.Usage {
		t.Errorf("got %v", err)
	}
}
