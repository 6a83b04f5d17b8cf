package capacity

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// The seed's published table, and what its author could not see.
func TestEnvelopeOfTheSeed(t *testing.T) {
	options := DefaultOptions()
	options.Checks = []Check{{record.TriggerWaiting, 2}, {record.TriggerKV, .75}, {record.TriggerP99E2E, 30}}
	shape := fold(t, options, seedReport(t)).Shapes[0]

	near(t, "lambda", *shape.Fit.Lambda, .328, .05)
	near(t, "sigma", *shape.Fit.Sigma, .162, .05)
	near(t, "kappa", *shape.Fit.Kappa, .00047, .05)
	near(t, "peak", *shape.Fit.Peak, 42, .05)
	near(t, "bounds", *knee(t, shape, record.KneeBounds).Concurrency, 4.9, .02)
	near(t, "power", *knee(t, shape, record.KneePower).Concurrency, 5, 0)
	near(t, "kneedle", *knee(t, shape, record.KneeKneedle).Concurrency, 10, 0)
	near(t, "marginal", *knee(t, shape, record.KneeMarginal).Concurrency, 20, 0)
	if shape.KneeRange.Agree {
		t.Error("rules from 4.9 to 20 agree")
	}
	near(t, "X_max", *shape.Capacity.XMax.RequestsPerSecond, 1.63, .01)
	near(t, "X_sustain", *shape.Capacity.XSustain.RequestsPerSecond, 1.63, 0)
	near(t, "X_plan", *shape.Capacity.XPlan.RequestsPerSecond, 1.467, .001)

	wantChecks := map[string]string{
		record.TriggerWaiting: "stays silent: 2 at c=40 is ratio 1.00, within the 10 % tolerance",
		record.TriggerKV:      "stays silent: 0.78 at c=40 is ratio 1.04, within the 10 % tolerance",
		record.TriggerP99E2E:  "acts from c=40 on",
	}
	wantActs := map[string]float64{record.TriggerWaiting: 2.2, record.TriggerKV: .825, record.TriggerP99E2E: 33}
	for _, check := range shape.Checks {
		if diff := cmp.Diff(wantChecks[check.Trigger], check.Verdict); diff != "" {
			t.Errorf("check %s (-want +got):\n%s", check.Trigger, diff)
		}
		near(t, check.Trigger+" acts above", check.ActsAbove, wantActs[check.Trigger], 1e-9)
	}
	wantThresholds := map[string]string{
		record.TriggerWaiting: "", record.TriggerKV: "few_loads", record.TriggerRunning: "no_metrics",
		record.TriggerP99E2E: "", record.TriggerP99TTFT: "no_metrics",
	}
	for trigger, want := range wantThresholds {
		got := ""
		if withheld := thresholdOf(t, shape, trigger).Withheld; withheld != nil {
			got = withheld.Code
		}
		if got != want {
			t.Errorf("threshold %s withheld %q, want %q", trigger, got, want)
		}
	}
	waiting := thresholdOf(t, shape, record.TriggerWaiting)
	var acts []bool
	for _, at := range waiting.Loads {
		acts = append(acts, *at.Acts)
	}
	if diff := cmp.Diff([]bool{false, false, false, true, true}, acts); diff != "" {
		t.Errorf("the proposed queue threshold acts at (-want +got):\n%s", diff)
	}
	if p99 := thresholdOf(t, shape, record.TriggerP99E2E); p99.MetricType != record.MetricTypeValue {
		t.Errorf("a quantile as %s is divided by the replicas", p99.MetricType)
	}
}

func TestEnvelopeOfTheSeedForAnObjective(t *testing.T) {
	options := DefaultOptions()
	options.SLOs = []record.BenchSLO{{Metric: record.MetricE2E, Percentile: 99, MaxSeconds: 30}}
	shape := fold(t, options, seedReport(t)).Shapes[0]
	near(t, "slo knee", *knee(t, shape, record.KneeSLO).Concurrency, 34.5, .001)
	near(t, "X_slo", *shape.Capacity.XSLO.RequestsPerSecond, 1.54, 0)
	near(t, "X_plan", *shape.Capacity.XPlan.RequestsPerSecond, 1.386, .001)
	if got := shape.Capacity.XPlan.Binding.Message; got != "p99_e2e is 35.5s at c=40, limit 30s" {
		t.Errorf("binding %q", got)
	}
	if sure := *shape.Capacity.XSLO.Confidence; sure < .4 || sure > .5 {
		t.Errorf("confidence %g: 739 requests whose p99 alone is known give about 0.46", sure)
	}
}

// An engine whose capacity is known: the knee, the plan and the threshold must
// be within 10 % of the truth in 95 % of the runs.
func TestEnvelopeFindsAKnownCapacity(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	options := DefaultOptions()
	options.Resamples = 20
	const runs = 200
	good := map[string]int{}
	for range runs {
		truth := engine{Batch: 16, Service: .5 + random.Float64(), Slow: .01 * random.Float64(), Noise: .02}
		shape := fold(t, options, truth.measure("r", []int{1, 2, 4, 8, 16, 32}, 900, random)).Shapes[0]
		plan := shape.Capacity.XPlan
		if plan.Withheld == nil && math.Abs(*plan.RequestsPerSecond/(.9*truth.capacity())-1) < .1 {
			good["plan"]++
		}
		if at := knee(t, shape, record.KneeKneedle).Concurrency; at != nil && math.Abs(*at/truth.Batch-1) < .1 {
			good["kneedle"]++
		}
		if running := thresholdOf(t, shape, record.TriggerRunning); running.Withheld == nil &&
			*running.ActsAbove > .7*truth.Batch && *running.ActsAbove < truth.Batch {
			good["running"]++
		}
		if shape.Capacity.XSustain.Binding.Code == "saturation" {
			good["saturation"]++
		}
	}
	t.Logf("of %d runs: %v", runs, good)
	for _, name := range []string{"plan", "kneedle", "running", "saturation"} {
		if good[name] < runs*95/100 {
			t.Errorf("%s right in %d of %d runs, want 95 %%", name, good[name], runs)
		}
	}
}

func TestEnvelopeIsIndependentOfTheUnitOfTime(t *testing.T) {
	base := engine{Batch: 8, Service: 1, Slow: .02}
	slow := engine{Batch: 8, Service: 10, Slow: .2}
	loads := []int{1, 2, 4, 8, 16}
	random := rand.New(rand.NewPCG(1, 1))
	a := fold(t, DefaultOptions(), base.measure("r", loads, 1000, random)).Shapes[0]
	b := fold(t, DefaultOptions(), slow.measure("r", loads, 10000, random)).Shapes[0]
	for i := range a.Knees {
		if (a.Knees[i].Concurrency == nil) != (b.Knees[i].Concurrency == nil) {
			t.Fatalf("knee %s is in one of two units", a.Knees[i].Rule)
		}
		if a.Knees[i].Concurrency != nil {
			near(t, a.Knees[i].Rule, *b.Knees[i].Concurrency, *a.Knees[i].Concurrency, 1e-4)
		}
	}
	near(t, "plan", 10**b.Capacity.XPlan.RequestsPerSecond, *a.Capacity.XPlan.RequestsPerSecond, 1e-4)
	near(t, "planned load", *b.Capacity.XPlan.Concurrency, *a.Capacity.XPlan.Concurrency, 1e-3)
}

// Two replicas that share twice the load are one replica under the load.
func TestEnvelopeIsPerReplica(t *testing.T) {
	one := engine{Batch: 8, Service: 1, Slow: .02}.measure("r", []int{1, 2, 4, 8, 16}, 1000, rand.New(rand.NewPCG(1, 1)))
	two := engine{Batch: 8, Service: 1, Slow: .02}.measure("r", []int{1, 2, 4, 8, 16}, 1000, rand.New(rand.NewPCG(1, 1)))
	for i := range two.Cases {
		c := &two.Cases[i]
		c.Case.Concurrency *= 2
		c.RequestsPerSecond *= 2
		c.OutputTokensPerSecond *= 2
		for _, s := range c.Server {
			for _, v := range []*float64{s.Mean, s.Max, s.Min} {
				if v != nil {
					*v *= 2
				}
			}
		}
	}
	a, b := fold(t, DefaultOptions(), one).Shapes[0], fold(t, DefaultOptions(), two).Shapes[0]
	if diff := cmp.Diff(a.Capacity, b.Capacity); diff != "" {
		t.Errorf("capacity of one and of two replicas:\n%s", diff)
	}
	if diff := cmp.Diff(a.Thresholds, b.Thresholds); diff != "" {
		t.Errorf("thresholds of one and of two replicas:\n%s", diff)
	}
}

func TestEnvelopeRefuses(t *testing.T) {
	report := seedReport(t)
	other := seedReport(t)
	other.Target.Model = "other"
	empty := seedReport(t)
	empty.Cases = nil
	cases := map[string]struct {
		sources []Source
		want    string
	}{
		"two models": {[]Source{{"a", report}, {"b", other}}, `join reports: a measured model "/models", b measured "other"`},
		"no case":    {[]Source{{"a", empty}}, "read reports: they hold no case"},
		"no report":  {nil, "read reports: they hold no case"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Envelope(test.sources, DefaultOptions())
			if err == nil || err.Error() != test.want || failure.KindOf(err) != failure.Usage {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// The same reports and seed give the same bytes, and no list is null.
func TestEnvelopeDocument(t *testing.T) {
	options := DefaultOptions()
	options.Checks = []Check{{record.TriggerRunning, 3}}
	first, err := record.Encode(fold(t, options, seedReport(t)))
	if err != nil {
		t.Fatal(err)
	}
	second, err := record.Encode(fold(t, options, seedReport(t)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(first), string(second)); diff != "" {
		t.Errorf("a second fold differs:\n%s", diff)
	}
	for _, list := range []string{
		"runs", "slos", "shapes", "levels", "excluded", "knees", "thresholds", "checks", "next_loads", "warnings",
		"evidence", "loads", "residuals", "curve", "cases", "tests",
	} {
		if strings.Contains(string(first), `"`+list+`": null`) {
			t.Errorf("%s is null where it is empty", list)
		}
	}
	var back record.CapacityEnvelope
	if err := record.Decode(first, record.KindCapacityEnvelope, &back); err != nil {
		t.Fatal(err)
	}
	again, err := json.MarshalIndent(back, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimSpace(string(first)), string(again)); diff != "" {
		t.Errorf("round trip (-first +again):\n%s", diff)
	}
}

func TestEnvelopeJoinsRuns(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 3))
	truth := engine{Batch: 8, Service: 1, Slow: .01, Noise: .01}
	a := truth.measure("a", []int{1, 4, 16}, 600, random)
	b := truth.measure("b", []int{2, 4, 8}, 600, random)
	envelope := fold(t, DefaultOptions(), a, b)
	shape := envelope.Shapes[0]
	var loads []float64
	for _, level := range shape.Levels {
		loads = append(loads, level.Concurrency)
	}
	if diff := cmp.Diff([]float64{1, 2, 4, 8, 16}, loads); diff != "" {
		t.Errorf("loads (-want +got):\n%s", diff)
	}
	if got := len(shape.Levels[2].Cases); got != 2 {
		t.Errorf("c=4 rests on %d cases, want 2", got)
	}
	if shape.Fit.Points != 6 {
		t.Errorf("%d points fitted, want each of the 6 cases", shape.Fit.Points)
	}
}

// Objectives of the runs' plans stand in for --slo, unless they differ.
func TestEnvelopeTakesObjectivesFromThePlans(t *testing.T) {
	slo := []record.BenchSLO{{Metric: record.MetricE2E, Percentile: 95, MaxSeconds: 20}}
	a, b := seedReport(t), seedReport(t)
	a.Plan.SLOs, b.Plan.SLOs = slo, slo
	if diff := cmp.Diff(slo, fold(t, DefaultOptions(), a, b).SLOs); diff != "" {
		t.Errorf("common objectives (-want +got):\n%s", diff)
	}
	b.Plan.SLOs = nil
	if got := fold(t, DefaultOptions(), a, b).SLOs; len(got) != 0 {
		t.Errorf("objectives of one run of two: %v", got)
	}
}
