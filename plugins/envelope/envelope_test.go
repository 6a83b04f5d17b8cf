package envelope

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/runner"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
	"github.com/kubectl-inference/kubectl-inference/test/golden"
)

const seedFile = "../../manifests/examples/seed-benchreport.json"

// outcome is what a user sees of one command line.
type outcome struct {
	stdout, stderr string
	code           int
}

// invoke runs the command as root does, without a terminal.
func invoke(t *testing.T, stdin string, environ []string, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	streams := term.New(strings.NewReader(stdin), &stdout, &stderr, environ)
	factory := kube.NewFactory("test", nil)
	cmd := New(factory, streams)
	factory.AddFlags(cmd.Flags())
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(context.Background())
	if err != nil {
		stderr.WriteString(failure.Text(err))
	}
	return outcome{stdout.String(), stderr.String(), failure.ExitCode(err)}
}

// full is a report with every column: an engine that runs 16 requests at once.
func full(t *testing.T) string {
	t.Helper()
	number := func(v float64) *float64 { return &v }
	series := func(v float64) *record.ServerSeries {
		return &record.ServerSeries{Samples: 120, Mean: number(v), Max: number(v), Min: number(v)}
	}
	report := record.BenchReport{
		TypeMeta: record.Meta(record.KindBenchReport), Run: "nightly-7", ToolVersion: "v0.1.0",
		Target: record.TargetFacts{Model: "deepseek-r1-14b"},
	}
	for _, load := range []int{1, 2, 4, 8, 12, 16, 24, 32} {
		running := min(float64(load), 16)
		waiting := float64(load) - running
		x := running / (2 + .08*(running-1))
		n := int(x * 1200)
		latency := func(seconds float64) record.LatencySummary {
			return record.LatencySummary{
				Count: n, P50: number(seconds), P95: number(1.1 * seconds), P99: number(1.3 * seconds), Max: number(1.5 * seconds),
				P99Low: number(1.2 * seconds), P99High: number(1.4 * seconds),
			}
		}
		report.Cases = append(report.Cases, record.CaseReport{
			Case:              record.BenchCase{Name: fmt.Sprintf("1024-128-c%d", load), PromptTokens: 1024, OutputTokens: 128, Concurrency: load},
			Window:            record.CaseWindow{Seconds: 1200, Steady: true},
			Counts:            record.CaseCounts{Started: n, Succeeded: n, Completed: n},
			RequestsPerSecond: x, RequestsPerSecondLow: number(.98 * x), RequestsPerSecondHigh: number(1.02 * x),
			OutputTokensPerSecond: 128 * x,
			Latency:               record.CaseLatencies{E2E: latency(float64(load) / x), TTFT: latency(.2 + waiting/x)},
			Server: map[string]*record.ServerSeries{
				record.SignalWaiting: series(waiting), record.SignalRunning: series(running),
				record.SignalKVCacheUsage: series(.06 * running), record.SignalReplicas: series(1),
				record.SignalPreemptions: {Samples: 120, Increase: number(0)},
			},
			Validity: record.Validity{Valid: load != 12, Reasons: []record.BenchFinding{{Code: "client_limited", Message: "the client was the limit"}}},
		})
	}
	data, err := record.Encode(report)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// shapes is a report of two token shapes, the second with one case.
func shapes(t *testing.T) string {
	t.Helper()
	var report record.BenchReport
	if err := json.Unmarshal([]byte(full(t)), &report); err != nil {
		t.Fatal(err)
	}
	last := &report.Cases[len(report.Cases)-1]
	last.Case.OutputTokens = 512
	last.Server = nil
	data, err := record.Encode(report)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestRendering(t *testing.T) {
	var short record.BenchReport
	if err := json.Unmarshal([]byte(full(t)), &short); err != nil {
		t.Fatal(err)
	}
	short.Cases = short.Cases[:2]
	short.Cases[0].Latency.E2E.Count = 40
	thin, err := record.Encode(short)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		stdin string
		args  []string
		width string
		code  int
	}{
		"shapes.txt":      {shapes(t), []string{"-"}, "80", 0},
		"seed.txt":        {"", []string{seedFile, "--check", "waiting=2", "--check", "kv=0.75", "--check", "p99=30"}, "80", 0},
		"seed-slo.txt":    {"", []string{seedFile, "--slo", "p99_e2e=30s", "--headroom", "0.2"}, "80", 0},
		"seed-broken.txt": {"", []string{seedFile, "--slo", "p99_e2e=2s"}, "80", 3},
		"full.txt":        {full(t), []string{"-", "--slo", "p99_e2e=8s", "--slo", "p95_ttft=2"}, "80", 0},
		"wide.txt":        {full(t), []string{"-"}, "132", 0},
		"thin.txt":        {string(thin), []string{"-"}, "60", 0},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			got := invoke(t, test.stdin, []string{"COLUMNS=" + test.width}, test.args...)
			if got.code != test.code {
				t.Errorf("exit code %d, want %d: %s", got.code, test.code, got.stderr)
			}
			golden.Compare(t, name, got.stdout)
			limit := min(max(atoi(t, test.width), minWidth), maxWidth)
			for line := range strings.Lines(got.stdout) {
				if lipgloss.Width(strings.TrimRight(line, "\n")) > limit {
					t.Errorf("wider than %d columns: %s", limit, line)
				}
				if strings.ContainsRune(line, '\x1b') {
					t.Errorf("colour without a terminal: %q", line)
				}
				if strings.TrimRight(line, " \n") != strings.TrimRight(line, "\n") {
					t.Errorf("trailing space: %q", line)
				}
			}
		})
	}
}

func atoi(t *testing.T, text string) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// The document of -o json holds what is on the screen and more, and the two
// formats agree.
func TestData(t *testing.T) {
	got := invoke(t, "", nil, seedFile, "-o", "json")
	var envelope record.CapacityEnvelope
	if err := record.Decode([]byte(got.stdout), record.KindCapacityEnvelope, &envelope); err != nil {
		t.Fatal(err)
	}
	if plan := envelope.Shapes[0].Capacity.XPlan.RequestsPerSecond; plan == nil || *plan != 1.467 {
		t.Errorf("X_plan %v, want 1.467", plan)
	}
	yaml := invoke(t, "", nil, seedFile, "-o", "yaml")
	if !strings.Contains(yaml.stdout, "kind: CapacityEnvelope\n") {
		t.Errorf("no document in YAML:\n%.200s", yaml.stdout)
	}
	path := invoke(t, "", nil, seedFile, "-o", "jsonpath={.shapes[0].thresholds[0].threshold}")
	if path.stdout != "1.21" {
		t.Errorf("jsonpath gives %q, want 1.21", path.stdout)
	}
}

// TestCSV: the table of a report leads to the advice of the report, as far as the
// table knows it.
func TestCSV(t *testing.T) {
	var report record.BenchReport
	if err := json.Unmarshal([]byte(full(t)), &report); err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	if err := report.WriteCSV(&table); err != nil {
		t.Fatal(err)
	}
	const plan = "-o=jsonpath={.shapes[0].capacity.x_plan.requests_per_second} {.shapes[0].capacity.x_max.requests_per_second}"
	want, got := invoke(t, full(t), nil, "-", plan), invoke(t, table.String(), nil, "-", plan)
	if got.code != 0 || got.stdout != want.stdout || len(strings.Fields(got.stdout)) != 2 {
		t.Errorf("the report says %q, its table %q: %s", want.stdout, got.stdout, got.stderr)
	}
}

func TestColourOnlyWhenAsked(t *testing.T) {
	var stdout bytes.Buffer
	streams := term.New(strings.NewReader(""), &stdout, &stdout, []string{"TERM=xterm-256color"})
	streams.SetColor(term.ColorAlways)
	cmd := New(kube.NewFactory("test", nil), streams)
	cmd.SetArgs([]string{seedFile})
	if err := cmd.ExecuteContext(context.Background()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(stdout.String(), "\x1b[") {
		t.Error("no colour where it was asked for")
	}
}

// cluster is an API server with the reports of runs as ConfigMaps.
func cluster(t *testing.T, reports map[string]map[string]string) (kubeconfig string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		name, found := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/llm/configmaps/")
		data, known := reports[name]
		switch {
		case name == "inference-bench-secret":
			reply(w, http.StatusForbidden, metav1.Status{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
				Status:   "Failure", Reason: metav1.StatusReasonForbidden, Code: 403, Details: &metav1.StatusDetails{Kind: "configmaps"},
				Message: `configmaps "inference-bench-secret" is forbidden: User "eve" cannot get resource "configmaps"`,
			})
		case !found || !known:
			reply(w, http.StatusNotFound, metav1.Status{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
				Status:   "Failure", Reason: metav1.StatusReasonNotFound, Code: 404, Details: &metav1.StatusDetails{Kind: "configmaps", Name: name},
			})
		default:
			reply(w, http.StatusOK, map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]string{"name": name, "namespace": "llm"}, "data": data,
			})
		}
	}))
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c",
"clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c","namespace":"llm"}}]}`, server.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

func reply(w http.ResponseWriter, code int, body any) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func TestRunOfTheCluster(t *testing.T) {
	seed, err := os.ReadFile(seedFile)
	if err != nil {
		t.Fatal(err)
	}
	config := cluster(t, map[string]map[string]string{
		runner.ReportName("nightly"): {runner.ReportKey: string(seed)},
		"inference-bench-running":    {},
		"inference-bench-newer":      {reportKey: strings.Replace(string(seed), "v1alpha1", "v2", 1)},
	})
	fromFile := invoke(t, "", nil, seedFile)
	fromRun := invoke(t, "", nil, "nightly", "--kubeconfig", config)
	if diff := cmp.Diff(fromFile, fromRun, cmp.AllowUnexported(outcome{})); diff != "" {
		t.Errorf("a run of the cluster (+) reads other than its file (-):\n%s", diff)
	}
	cases := map[string]struct {
		args   []string
		code   int
		stderr string
	}{
		"no such run": {[]string{"absent"}, 5, "error: read report of run absent: there is no file absent and no such run in namespace llm\n" +
			"hint: `kubectl get configmaps -n llm` lists the reports, named inference-bench-RUN; -n chooses the namespace; a file needs its path\n"},
		"not ended": {[]string{"running"}, 5, "error: read report of run running: configmap llm/inference-bench-running has no key report.json\n" +
			"hint: has the run ended? its report comes last\n"},
		"not permitted": {[]string{"secret"}, 4, "error: read report of run secret: configmaps \"inference-bench-secret\" is forbidden: User \"eve\" cannot get resource \"configmaps\"\n" +
			"hint: ask for the permission; `kubectl auth can-i get configmaps` says when you have it\n"},
		"newer version": {[]string{"newer"}, 2, "error: read newer: read BenchReport: version \"kubectl-inference.io/v2\" is not known, this build reads kubectl-inference.io/v1alpha1\n" +
			"hint: use the kubectl-inference release that wrote it, or a newer one\n"},
		"no name of a run": {[]string{"Not_A_Run"}, 2, "error: read report Not_A_Run: there is no such file, and a run cannot have that name\n" +
			"hint: give the path of a saved report, or the name of a run\n"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			got := invoke(t, "", nil, append(test.args, "--kubeconfig", config)...)
			if diff := cmp.Diff(outcome{stderr: test.stderr, code: test.code}, got, cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBadInput(t *testing.T) {
	cases := map[string]struct {
		stdin string
		args  []string
		code  int
		error string
	}{
		"nothing":               {"", []string{}, 2, "read arguments: no report"},
		"no such file":          {"", []string{"no/such.json"}, 5, "read report no/such.json: there is no such file"},
		"a directory":           {"", []string{"testdata"}, 2, "read report testdata: read testdata: is a directory"},
		"empty input":           {"", []string{"-"}, 2, "read standard input: read BenchReport: not a JSON document: unexpected end of JSON input"},
		"another document":      {`{"apiVersion":"v1","kind":"Pod"}`, []string{"-"}, 2, `read standard input: read BenchReport: the document is of kind "Pod"`},
		"no case":               {`{"apiVersion":"kubectl-inference.io/v1alpha1","kind":"BenchReport"}`, []string{"-"}, 2, "read reports: they hold no case"},
		"a run twice":           {"", []string{"testdata/../../../manifests/examples/seed-benchreport.json", "../../manifests/examples/seed-benchreport.json"}, 2, "read ../../manifests/examples/seed-benchreport.json: run seed-published is also in testdata/../../../manifests/examples/seed-benchreport.json"},
		"a table of something":  {"a,b\n1,2\n", []string{"-"}, 2, "read standard input: read CSV: it has no column run_id"},
		"no table":              {"", []string{"none.csv"}, 5, "read report none.csv: there is no such file"},
		"standard input twice":  {"", []string{"-", "-"}, 2, "read arguments: standard input can be read once"},
		"unknown format":        {"", []string{seedFile, "-o", "table"}, 2, `read --output: format "table" is not known`},
		"headroom of all":       {"", []string{seedFile, "--headroom", "1"}, 2, "read --headroom: 1 is not between 0 and 1"},
		"headroom not a number": {"", []string{seedFile, "--headroom", "nan"}, 2, "read --headroom: NaN is not between 0 and 1"},
		"tolerance below 0":     {"", []string{seedFile, "--hpa-tolerance", "-0.1"}, 2, "read --hpa-tolerance: -0.1 is not between 0 and 1"},
		"no limit":              {"", []string{seedFile, "--slo", "p99_e2e"}, 2, `read --slo: "p99_e2e" is not an objective`},
		"no percentile":         {"", []string{seedFile, "--slo", "e2e=3s"}, 2, `read --slo: "e2e=3s" is not an objective`},
		"percentile of 100":     {"", []string{seedFile, "--slo", "p100_e2e=3s"}, 2, `read --slo "p100_e2e=3s": p100 is not a percentile above 0 and below 100`},
		"unknown latency":       {"", []string{seedFile, "--slo", "p99_ttlt=3s"}, 2, `read --slo "p99_ttlt=3s": there is no latency "ttlt"`},
		"limit of 0":            {"", []string{seedFile, "--slo", "p99_e2e=0"}, 2, `read --slo "p99_e2e=0": the limit is not above 0`},
		"limit not a time":      {"", []string{seedFile, "--slo", "p99_e2e=soon"}, 2, `read --slo "p99_e2e=soon": "soon" is not a duration`},
		"unknown trigger":       {"", []string{seedFile, "--check", "cpu=80"}, 2, `read --check "cpu=80": there is no trigger "cpu"`},
		"threshold of 0":        {"", []string{seedFile, "--check", "kv=0"}, 2, `read --check "kv=0": the threshold is not a number above 0`},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			got := invoke(t, test.stdin, []string{"KUBECONFIG=" + os.DevNull}, test.args...)
			line, _, _ := strings.Cut(got.stderr, "\n")
			want := outcome{stderr: "error: " + test.error, code: test.code}
			if diff := cmp.Diff(want, outcome{got.stdout, line, got.code}, cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A reader that goes away ends the rendering with its error.
func TestWriterThatFails(t *testing.T) {
	gone := errors.New("gone")
	err := render(writer{gone}, record.CapacityEnvelope{Shapes: []record.ShapeEnvelope{{Capacity: record.Capacity{XPlan: record.Rate{Withheld: &record.Notice{}}}}}}, 80)
	if !errors.Is(err, gone) {
		t.Errorf("error %v, want %v", err, gone)
	}
}

type writer struct{ err error }

func (w writer) Write([]byte) (int, error) { return 0, w.err }
