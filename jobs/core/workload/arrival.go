package workload

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// The processes by which requests arrive in an open loop.
const (
	Constant = "constant"
	Poisson  = "poisson"
	Gamma    = "gamma"
	Replay   = "trace"
)

// MaxRate bounds a rate in requests a second.
const MaxRate = 100_000

// Arrival is an open loop: requests are due at times that do not depend on the
// server's answers.
type Arrival struct {
	// Process is Constant (equal gaps), Poisson (exponential gaps), Gamma (gaps
	// of a gamma distribution) or Replay (the times of Trace).
	Process string `json:"process"`
	// Rate is the mean number of requests a second where there are no Stages.
	Rate float64 `json:"rate,omitempty"`
	// Burstiness is Gamma's shape k: the squared coefficient of variation of
	// the gaps is 1/k. 1 is Poisson, less is burstier, more is more even.
	Burstiness float64 `json:"burstiness,omitempty"`
	// Stages change the rate while the case runs.
	Stages []Stage `json:"stages,omitempty"`
	// MaxInFlight bounds the requests in flight; one that is due while they are
	// all taken is sent late, and counted. 0 is DefaultMaxInFlight.
	MaxInFlight int `json:"max_in_flight,omitempty"`
	// Trace is what Replay sends.
	Trace *Trace `json:"trace,omitempty"`
}

// DefaultMaxInFlight is far more than one replica answers at once, and less than
// the ports of one address.
const DefaultMaxInFlight = 10_000

// Stage is a stretch of time in which the rate goes evenly from one value to
// another.
type Stage struct {
	Seconds  float64 `json:"seconds"`
	FromRate float64 `json:"from_rate"`
	ToRate   float64 `json:"to_rate"`
}

// ParseStages reads stages as the flag has them: RATE:TIME for a steady rate,
// FROM-TO:TIME for a ramp, joined by commas: 1:60s,1-8:2m,8:60s.
func ParseStages(text string) ([]Stage, error) {
	var stages []Stage
	for _, field := range strings.Split(text, ",") {
		rates, length, ok := strings.Cut(strings.TrimSpace(field), ":")
		from, to, ramp := strings.Cut(rates, "-")
		if !ramp {
			to = from
		}
		low, err1 := strconv.ParseFloat(from, 64)
		high, err2 := strconv.ParseFloat(to, 64)
		span, err3 := time.ParseDuration(length)
		if !ok || err1 != nil || err2 != nil || err3 != nil {
			return nil, failure.New(failure.Usage, "write RATE:TIME or FROM-TO:TIME, joined by commas, such as 1:60s,1-8:2m,8:60s", "read --stages: %q is not a stage", field)
		}
		stages = append(stages, Stage{Seconds: span.Seconds(), FromRate: low, ToRate: high})
	}
	return stages, nil
}

// Seconds is the length of all stages or of the trace; 0 for a steady rate,
// which has no end of its own.
func (a Arrival) Seconds() float64 {
	if a.Trace != nil {
		return a.Trace.Seconds()
	}
	sum := 0.0
	for _, stage := range a.Stages {
		sum += stage.Seconds
	}
	return sum
}

// Expected is the mean number of requests that are due within the given time.
func (a Arrival) Expected(seconds float64) float64 {
	if a.Trace != nil {
		n := 0
		for _, at := range a.Trace.AtSeconds {
			if at < seconds {
				n++
			}
		}
		return float64(n)
	}
	if len(a.Stages) == 0 {
		return a.Rate * seconds
	}
	sum := 0.0
	for _, stage := range a.Stages {
		sum += stage.until(min(max(seconds, 0), stage.Seconds))
		seconds -= stage.Seconds
	}
	return sum
}

// Validate refuses an arrival that cannot be sent.
func (a Arrival) Validate() error {
	within := func(rate float64) bool { return rate >= 0 && rate <= MaxRate }
	switch a.Process {
	case Constant, Poisson:
	case Gamma:
		if !(a.Burstiness > 0) || a.Burstiness > 1e6 {
			return fmt.Errorf("burstiness %v is not above 0", a.Burstiness)
		}
	case Replay:
		if a.Trace == nil || len(a.Stages) > 0 || a.Rate != 0 {
			return fmt.Errorf("a trace is needed, without rate and stages")
		}
		return a.Trace.Validate()
	default:
		return fmt.Errorf("process %q is none of %s, %s, %s, %s", a.Process, Constant, Poisson, Gamma, Replay)
	}
	switch {
	case a.Trace != nil:
		return fmt.Errorf("process %s does not take a trace", a.Process)
	case a.MaxInFlight < 0:
		return fmt.Errorf("max_in_flight %d is below 0", a.MaxInFlight)
	case a.Process != Gamma && a.Burstiness != 0:
		return fmt.Errorf("burstiness is of process %s, not of %s", Gamma, a.Process)
	case len(a.Stages) == 0 && (!(a.Rate > 0) || !within(a.Rate)):
		return fmt.Errorf("rate %v is not above 0 and at most %d a second", a.Rate, MaxRate)
	case len(a.Stages) > 0 && a.Rate != 0:
		return fmt.Errorf("rate and stages exclude one another")
	}
	for _, stage := range a.Stages {
		if !(stage.Seconds > 0) || math.IsInf(stage.Seconds, 0) || !within(stage.FromRate) || !within(stage.ToRate) {
			return fmt.Errorf("a stage needs a time above 0 and rates of 0 to %d a second", MaxRate)
		}
	}
	return nil
}

// Times yields the times in seconds at which requests are due, in order: first
// warmup seconds at the rate at which the load begins, then the load itself, up
// to end. A trace's own beginning is its warm-up.
//
// The gaps are those of a renewal process with mean 1, stretched by the inverse
// of the cumulative rate: a Poisson process stays one under any changing rate
// (Cinlar 1975, time change).
func (a Arrival) Times(seed uint64, warmup, end float64) iter.Seq[float64] {
	if a.Trace != nil {
		return func(yield func(float64) bool) {
			for _, at := range a.Trace.AtSeconds {
				if at >= end || !yield(at) {
					return
				}
			}
		}
	}
	stages := a.Stages
	if len(stages) == 0 {
		stages = []Stage{{Seconds: max(end-warmup, 0), FromRate: a.Rate, ToRate: a.Rate}}
	}
	if warmup > 0 {
		stages = append([]Stage{{Seconds: warmup, FromRate: stages[0].FromRate, ToRate: stages[0].FromRate}}, stages...)
	}
	return func(yield func(float64) bool) {
		random := rand.New(rand.NewPCG(scramble(seed), 0xa441))
		next := 0.0 // cumulative requests at which the next one is due
		if a.Process != Constant {
			next = a.gap(random)
		}
		begin, before := 0.0, 0.0
		for _, stage := range stages {
			total := stage.until(stage.Seconds)
			for next < before+total {
				at := begin + stage.when(next-before)
				if at >= end || !yield(at) {
					return
				}
				next += a.gap(random)
			}
			before += total
			begin += stage.Seconds
		}
	}
}

// gap is a gap of mean 1.
func (a Arrival) gap(random *rand.Rand) float64 {
	switch a.Process {
	case Poisson:
		return random.ExpFloat64()
	case Gamma:
		return gamma(random, a.Burstiness) / a.Burstiness
	}
	return 1
}

// until is the mean number of requests in the stage's first t seconds.
func (s Stage) until(t float64) float64 {
	return s.FromRate*t + (s.ToRate-s.FromRate)*t*t/(2*s.Seconds)
}

// when is the inverse of until.
func (s Stage) when(n float64) float64 {
	slope := (s.ToRate - s.FromRate) / s.Seconds
	// 2n / (r + sqrt(r^2 + 2 slope n)) is the root that loses no digits where the
	// slope is near 0.
	root := s.FromRate + math.Sqrt(max(s.FromRate*s.FromRate+2*slope*n, 0))
	if root == 0 {
		return 0
	}
	return min(2*n/root, s.Seconds)
}

// gamma draws from a gamma distribution with the given shape and scale 1, by the
// method of Marsaglia and Tsang (2000), with their boost for shapes below 1.
func gamma(random *rand.Rand, shape float64) float64 {
	if shape < 1 {
		// 1 - Float64 is never 0.
		return gamma(random, shape+1) * math.Pow(1-random.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := random.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-random.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}
