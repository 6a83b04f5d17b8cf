package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

func planOf(t *testing.T, args ...string) record.BenchPlan {
	t.Helper()
	got := run(t, nil, append([]string{"plan", "--url", "http://gateway.example:8000", "-o", "json"}, args...)...)
	if got.err != nil {
		t.Fatal(got.err)
	}
	var plan record.BenchPlan
	if err := record.Decode([]byte(got.stdout), record.KindBenchPlan, &plan); err != nil {
		t.Fatal(err)
	}
	return plan
}

// TestPresets holds the presets against the cases of the platform that they are
// from: prompt, output, concurrency, and whether the answer is streamed.
func TestPresets(t *testing.T) {
	var prompts []string
	for _, tokens := range []int{128, 4096, 8192, 15000, 39872} {
		for _, load := range []int{1, 10} {
			prompts = append(prompts, fmt.Sprintf("%d/128 c%d", tokens, load))
		}
	}
	want := map[string][]string{
		"concurrency-saturation": {"1024/128 c1", "1024/128 c5", "1024/128 c10", "1024/128 c20", "1024/128 c40"},
		"prompt-length":          prompts,
		"output-length":          {"1024/128 c20", "1024/512 c20", "1024/1024 c20"},
		"scheduler-batching":     {"1024/128 c20"},
		"streaming":              {"1024/512 c20 whole", "1024/512 c40 whole", "1024/512 c20", "1024/512 c40"},
	}
	names := presetNames()
	if len(names) != len(want) {
		t.Errorf("presets %v", names)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			plan := planOf(t, "--preset", name)
			var got []string
			for _, c := range plan.Cases {
				mark := ""
				if !plan.Streams(c) {
					mark = " whole"
				}
				got = append(got, fmt.Sprintf("%s c%d%s", c.Shape(), c.Concurrency, mark))
			}
			if diff := cmp.Diff(want[name], got); diff != "" {
				t.Error(diff)
			}
			if plan.WarmupSeconds != 30 || plan.DurationSeconds != 480 || plan.RequestTimeoutSeconds != 380 || plan.Temperature != 0.2 || plan.Profile.Name != name || plan.Profile.Hypothesis == "" {
				t.Errorf("%+v", plan)
			}
		})
	}
	plan := planOf(t, "--preset", "streaming", "--duration", "1m", "--stream=false", "--engine-setting", "max_num_seqs=8", "--engine-setting", "max_num_batched_tokens=2048")
	if len(plan.Cases) != 2 || plan.Streams(plan.Cases[0]) || plan.DurationSeconds != 60 || *plan.Profile.Engine.MaxNumSeqs != 8 {
		t.Errorf("flags are weaker than the preset: %+v", plan)
	}
}

func TestPresetRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no such preset":  {[]string{"--preset", "fast"}, "error: read --preset: there is no preset \"fast\"\nhint: the presets are concurrency-saturation, output-length, prompt-length, scheduler-batching, streaming\n"},
		"a path":          {[]string{"--preset", "../presets/streaming"}, ""},
		"preset and load": {[]string{"--preset", "streaming", "--concurrency", "1"}, "error: read --concurrency: the cases come from the preset streaming\nhint: leave it out, or leave the preset out; --duration, --warmup, --stream and --slo go with a preset\n"},
		"preset and file": {[]string{"--preset", "streaming", "-f", "testdata/bench.yaml"}, ""},
		"a bad setting":   {[]string{"--engine-setting", "seqs=4"}, ""},
		"csv of a plan":   {[]string{"-o", "csv"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, nil, append([]string{"plan", "--url", "http://a"}, test.args...)...)
			if failure.KindOf(got.err) != failure.Usage || got.stdout != "" {
				t.Fatalf("error %v, standard output %q", got.err, got.stdout)
			}
			if test.want != "" && failure.Text(got.err) != test.want {
				t.Error(failure.Text(got.err))
			}
		})
	}
}

// TestExamples: each bench file of manifests/examples can be planned as it is.
func TestExamples(t *testing.T) {
	const folder = "../../manifests/examples/bench"
	files, err := filepath.Glob(folder + "/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(text), "# ") {
				t.Error("it does not say what it is for")
			}
			t.Chdir(folder)
			plan := planOf(t, "-f", filepath.Base(file))
			if len(plan.Cases) == 0 || plan.TotalSeconds() > 3600 || plan.Profile == nil {
				t.Errorf("%d cases, %.0f s", len(plan.Cases), plan.TotalSeconds())
			}
			if slices.ContainsFunc(plan.Cases, func(c record.BenchCase) bool { return c.Name == "" }) {
				t.Error("a case has no name")
			}
		})
	}
}
