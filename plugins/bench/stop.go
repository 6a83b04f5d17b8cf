package bench

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
)

// ending are the flags that say how often cases run, when they end, and what is
// searched for.
type ending struct {
	repeats   int
	interval  string
	saturated bool
	errors    bool
	goodput   string

	findKnee       bool
	budget         time.Duration
	precision      string
	maxConcurrency int
}

// searchWarmup is the least warm-up of a search's cases: it makes many short
// ones, and lengthens the warm-up itself where answers take long.
const searchWarmup = 10 * time.Second

// maxRepeats bounds --repeats.
const maxRepeats = 100

func (e *ending) addFlags(flags *pflag.FlagSet) {
	flags.IntVar(&e.repeats, "repeats", 1, "run every case so often; with more than 1 each round runs in an order of its own, decided by --seed")
	flags.StringVar(&e.interval, "stop-when-ci", "", "end a case early once the 95 % interval of its request rate is within this share on either side, such as 5%")
	flags.BoolVar(&e.saturated, "stop-when-saturated", false, "end an open loop whose backlog grows; leave out closed loops beyond one that brought latency and no throughput")
	flags.BoolVar(&e.errors, "stop-on-errors", true, "end a case early once more than --max-error-rate of its requests fail with 95 % confidence")
	flags.StringVar(&e.goodput, "min-goodput", "", "with --slo: share of good requests, such as 99%, below which a case ends the run with exit code 3; without it, a missed objective is reported and is no error")
	flags.BoolVar(&e.findKnee, "find-knee", false, "search for the highest Poisson rate at which every --slo holds, instead of running a list of cases")
	flags.DurationVar(&e.budget, "budget", 20*time.Minute, "with --find-knee: the longest that the search may take")
	flags.StringVar(&e.precision, "precision", "10%", "with --find-knee: end once the answer's 95 % interval is so narrow")
	flags.IntVar(&e.maxConcurrency, "max-concurrency", 256, "with --find-knee: requests in flight at most in the closed loops by which it begins")
}

// share reads 5% or 0.05.
func share(flag, text string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	value, err := strconv.ParseFloat(number, 64)
	if percent {
		value /= 100
	}
	if err != nil || !(value > 0 && value <= 1) {
		return 0, failure.New(failure.Usage, "write a share such as 5% or 0.05", "read --%s: %q is not a share above 0", flag, text)
	}
	return value, nil
}

// kneeFlags are of a search alone; loadOfSearch are the loads that it chooses.
var (
	kneeFlags    = []string{"budget", "precision", "max-concurrency"}
	loadOfSearch = []string{"concurrency", "requests", "rate", "arrival", "burstiness", "stages", "trace", "duration", "repeats", "stop-when-ci", "stop-when-saturated"}
)

func (e *ending) validate(flags *pflag.FlagSet) error {
	if e.repeats < 1 || e.repeats > maxRepeats {
		return failure.New(failure.Usage, fmt.Sprintf("give 1 to %d", maxRepeats), "read --repeats: %d", e.repeats)
	}
	if e.repeats > 1 && e.saturated {
		return failure.New(failure.Usage, "leave one of them out", "read --stop-when-saturated: it needs the cases in their order, and --repeats shuffles them")
	}
	for _, name := range kneeFlags {
		if !e.findKnee && flags.Changed(name) {
			return failure.New(failure.Usage, "give --find-knee too, or leave it out", "read --%s: it is of --find-knee", name)
		}
	}
	for _, name := range loadOfSearch {
		if e.findKnee && flags.Changed(name) {
			return failure.New(failure.Usage, "leave it out: the search chooses the load", "read --%s: --find-knee excludes it", name)
		}
	}
	return nil
}

// apply makes the flags part of the plan, whose cases are there.
func (e *ending) apply(plan *record.BenchPlan, warmupGiven bool) (err error) {
	rules := record.StopRules{Errors: e.errors, Saturated: e.saturated}
	if e.interval != "" {
		if rules.Interval, err = share("stop-when-ci", e.interval); err != nil {
			return err
		}
	}
	if rules != (record.StopRules{}) {
		plan.Stop = &rules
	}
	if e.goodput != "" {
		if plan.MinGoodput, err = share("min-goodput", e.goodput); err != nil {
			return err
		}
	}
	if e.findKnee {
		return e.search(plan, warmupGiven)
	}
	plan.Cases = repeated(plan.Cases, e.repeats, plan.Seed)
	return nil
}

// search replaces the cases by a search for requests like the first one's.
func (e *ending) search(plan *record.BenchPlan, warmupGiven bool) error {
	precision, err := share("precision", e.precision)
	if err != nil {
		return err
	}
	shape := plan.Cases[0]
	for _, one := range plan.Cases {
		if one.Shape() != shape.Shape() {
			return failure.New(failure.Usage, "search for each shape in a run of its own", "read --find-knee: there are several shapes, %s and %s", shape.Shape(), one.Shape())
		}
	}
	shape.Name, shape.Concurrency, shape.DurationSeconds = "", 0, 0
	if !warmupGiven {
		plan.WarmupSeconds = searchWarmup.Seconds()
	}
	plan.Cases = []record.BenchCase{}
	plan.FindKnee = &record.KneeSearch{Case: shape, BudgetSeconds: e.budget.Seconds(), Precision: precision, Confidence: 0.95, MaxConcurrency: e.maxConcurrency}
	return nil
}

// repeated are rounds of the cases. In what order a round runs is a matter of
// chance, so that what drifts with time does not look like an effect of load.
func repeated(cases []record.BenchCase, rounds int, seed uint64) []record.BenchCase {
	if rounds < 2 {
		return cases
	}
	random := rand.New(rand.NewPCG(seed, 0x0ade))
	all := make([]record.BenchCase, 0, rounds*len(cases))
	for round := range rounds {
		for _, i := range random.Perm(len(cases)) {
			one := cases[i]
			if round > 0 {
				one.Repeat = round + 1
				one.Name = fmt.Sprintf("%s-run%d", one.Name, one.Repeat)
			}
			all = append(all, one)
		}
	}
	return all
}

// cost says how long a plan takes, before it starts.
func cost(plan record.BenchPlan) string {
	whole := time.Duration(plan.TotalSeconds() * float64(time.Second)).Round(time.Second)
	if plan.FindKnee == nil {
		return fmt.Sprintf("%d cases, about %s", len(plan.Cases), whole)
	}
	return fmt.Sprintf("searching for the knee, %.3g minutes at most, less where the answer is clear earlier", whole.Minutes())
}

// kneeLines are what a search found, for people.
func kneeLines(knee *record.KneeResult) string {
	if knee == nil {
		return ""
	}
	return fmt.Sprintf("knee: %s (%d cases in %.3g min)\n", output.Cell(knee.Message), len(knee.Decisions), knee.Seconds/60)
}
