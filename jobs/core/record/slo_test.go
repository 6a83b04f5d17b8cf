package record

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

func TestParseSLO(t *testing.T) {
	for text, want := range map[string]BenchSLO{
		"p99_e2e=30s":          {MetricE2E, 99, 30},
		"p95_ttft=2":           {MetricTTFT, 95, 2},
		"p50_tpot=50ms":        {MetricTPOT, 50, 0.05},
		"p99.9_max_stall=1m1s": {MetricMaxStall, 99.9, 61},
		"p0.5_e2e=0.25":        {MetricE2E, 0.5, 0.25},
	} {
		got, err := ParseSLO(text)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, want %+v, error %v", text, got, want, err)
		}
	}
}

func TestParseSLORefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":             `read --slo: "" is not an objective`,
		"p99_e2e":      `read --slo: "p99_e2e" is not an objective`,
		"e2e=3s":       `read --slo: "e2e=3s" is not an objective`,
		"99_e2e=3s":    `read --slo: "99_e2e=3s" is not an objective`,
		"p100_e2e=3s":  `read --slo "p100_e2e=3s": p100 is not a percentile above 0 and below 100`,
		"p0_e2e=3s":    `read --slo "p0_e2e=3s": p0 is not a percentile above 0 and below 100`,
		"p_e2e=3s":     `read --slo "p_e2e=3s": p is not a percentile above 0 and below 100`,
		"pNaN_e2e=3s":  `read --slo "pNaN_e2e=3s": pNaN is not a percentile above 0 and below 100`,
		"p99_ttlt=3s":  `read --slo "p99_ttlt=3s": there is no latency "ttlt"`,
		"p99_e2e=":     `read --slo "p99_e2e=": "" is not a duration`,
		"p99_e2e=soon": `read --slo "p99_e2e=soon": "soon" is not a duration`,
		"p99_e2e=0":    `read --slo "p99_e2e=0": the limit is not above 0`,
		"p99_e2e=-1s":  `read --slo "p99_e2e=-1s": the limit is not above 0`,
		"p99_e2e=NaN":  `read --slo "p99_e2e=NaN": the limit is not above 0`,
		"p99_e2e=+Inf": `read --slo "p99_e2e=+Inf": the limit is not above 0`,
	} {
		_, err := ParseSLO(text)
		if err == nil || err.Error() != want || failure.KindOf(err) != failure.Usage || failure.HintOf(err) == "" {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}

func TestParseSLOs(t *testing.T) {
	got, err := ParseSLOs(nil)
	if err != nil || got == nil || len(got) != 0 {
		t.Errorf("none is %#v, error %v", got, err)
	}
	got, err = ParseSLOs([]string{"p99_e2e=30s", "p95_ttft=2s"})
	if diff := cmp.Diff([]BenchSLO{{MetricE2E, 99, 30}, {MetricTTFT, 95, 2}}, got); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	if _, err := ParseSLOs([]string{"p99_e2e=30s", "x"}); err == nil {
		t.Error("a bad one among good ones is taken")
	}
}

// FuzzParseSLO: what is read here is what a plan accepts.
func FuzzParseSLO(f *testing.F) {
	for _, seed := range []string{"p99_e2e=30s", "p0.1_ttft=1e3", "p99_e2e", "p1e1_tpot=0x1p-2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		slo, err := ParseSLO(text)
		if err != nil {
			return
		}
		plan := BenchPlan{Target: BenchTarget{URL: "http://a", API: APIChat}, DurationSeconds: 1, RequestTimeoutSeconds: 1,
			Cases: []BenchCase{{Name: "a", PromptTokens: 1, OutputTokens: 1, Concurrency: 1}}, SLOs: []BenchSLO{slo}}
		if err := plan.Validate(); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}
