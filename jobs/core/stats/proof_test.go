package stats_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/stats"
)

// autoregressive is a normal AR(1) series of mean 0 and variance 1.
func autoregressive(random *rand.Rand, n int, phi float64) []float64 {
	series := make([]float64, n)
	value := random.NormFloat64()
	for i := range series {
		value = phi*value + math.Sqrt(1-phi*phi)*random.NormFloat64()
		series[i] = value
	}
	return series
}

// Intervals hold the truth 95 times of 100, also where latencies depend on the
// ones before them.
func TestSeriesIntervalsCover(t *testing.T) {
	const rounds = 1500
	for _, phi := range []float64{0, 0.5, 0.8} {
		t.Run(fmt.Sprintf("phi %v", phi), func(t *testing.T) {
			random := rand.New(rand.NewPCG(11, uint64(100*phi)))
			mean, quantile, naive := 0, 0, 0
			const q = 0.9
			truth := math.Sqrt2 * math.Erfinv(2*q-1)
			for range rounds {
				series := autoregressive(random, 2000, phi)
				if _, low, high, ok := stats.SeriesMeanInterval(series, 0.95); ok && low <= 0 && 0 <= high {
					mean++
				}
				sorted := slices.Sorted(slices.Values(series))
				holds := func(low, high int) bool {
					return low > 0 && high > 0 && sorted[low-1] <= truth && truth <= sorted[high-1]
				}
				if holds(stats.SeriesQuantileInterval(series, q, stats.Percentile(sorted, q), 0.95)) {
					quantile++
				}
				if holds(stats.QuantileInterval(len(series), q, 0.95)) {
					naive++
				}
			}
			for name, covered := range map[string]int{"mean": mean, "quantile": quantile} {
				if share := float64(covered) / rounds; math.Abs(share-0.95) > 0.02 {
					t.Errorf("%s: covered %.3f", name, share)
				}
			}
			if phi == 0.8 && float64(naive)/rounds > 0.85 {
				t.Errorf("the interval of independent samples covers %.3f: the series is too tame to prove anything", float64(naive)/rounds)
			}
		})
	}
}

func TestDesignEffect(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	for _, phi := range []float64{0, 0.5, 0.9} {
		want := (1 + phi) / (1 - phi)
		if got := stats.DesignEffect(autoregressive(random, 200_000, phi)); math.Abs(got-want) > 0.1*want {
			t.Errorf("phi %v: %.3f, want %.3f", phi, got, want)
		}
	}
	if got := stats.DesignEffect([]float64{1, 1, 1, 1, 1, 1}); got != 1 {
		t.Errorf("a constant: %v", got)
	}
}

// The bounds of MLPerf's early stopping: to claim p99 with 99 % confidence takes
// 459 requests with none over the limit, 662 with one, 838 with two, 1,307 with
// five, 2,010 with ten.
func TestShareBounds(t *testing.T) {
	for k, n := range map[int]int{0: 459, 1: 662, 2: 838, 5: 1307, 10: 2010} {
		if _, high := stats.ShareBounds(k, n, 0.99); high > 0.01 {
			t.Errorf("%d of %d: at most %v", k, n, high)
		}
		if _, high := stats.ShareBounds(k, n-1, 0.99); high <= 0.01 {
			t.Errorf("%d of %d: at most %v", k, n-1, high)
		}
		if low, _ := stats.ShareBounds(n-k, n, 0.99); low < 0.99 {
			t.Errorf("%d of %d: at least %v", n-k, n, low)
		}
	}
	if low, high := stats.ShareBounds(0, 0, 0.95); low != 0 || high != 1 {
		t.Errorf("nothing seen: %v to %v", low, high)
	}
	if low, high := stats.ShareBounds(7, 7, 0.95); high != 1 || math.Abs(low-math.Pow(0.05, 1.0/7)) > 1e-9 {
		t.Errorf("7 of 7: %v to %v", low, high)
	}
}

// mm1 simulates an M/M/1 queue with a service rate of 1 and returns what DriftOf
// reads of the window after its warm-up.
func mm1(random *rand.Rand, rho float64, arrivals int) (parts []float64, peak float64, n int) {
	parts = make([]float64, stats.DriftParts)
	window := float64(arrivals) / rho
	part := window / stats.DriftParts
	at, inside := -window/4, 0.0
	next, leave := at+random.ExpFloat64()/rho, math.Inf(1)
	for at < window {
		event := min(next, leave, window)
		for from := max(at, 0); from < event; {
			i := min(int(from/part), stats.DriftParts-1)
			to := event
			if i < stats.DriftParts-1 {
				to = min(event, part*float64(i+1))
			}
			if to <= from {
				to = math.Nextafter(from, math.Inf(1))
			}
			parts[i] += inside * (to - from) / part
			from = to
		}
		if at = event; at >= window {
			break
		}
		if next <= leave {
			inside++
			next = at + random.ExpFloat64()/rho
			if inside == 1 {
				leave = at + random.ExpFloat64()
			}
			if at > 0 {
				n++
			}
		} else {
			inside--
			leave = math.Inf(1)
			if inside > 0 {
				leave = at + random.ExpFloat64()
			}
		}
		if at > 0 {
			peak = max(peak, inside)
		}
	}
	return parts, peak, n
}

// A queue at 0.9 of its capacity is stable, at 1.0 it is called at capacity,
// where a line fit calls it stable, and at 1.1 over (inference-sim#1614).
func TestDriftOfKnownQueues(t *testing.T) {
	const rounds = 200
	for rho, want := range map[float64]stats.Drift{0.7: stats.DriftStable, 0.9: stats.DriftStable, 1: stats.DriftAtCapacity, 1.1: stats.DriftOver, 1.5: stats.DriftOver} {
		seen := map[stats.Drift]int{}
		for seed := range uint64(rounds) {
			verdict, _ := stats.DriftOf(mm1(rand.New(rand.NewPCG(seed, 17)), rho, 8000))
			seen[verdict]++
		}
		if share := float64(seen[want]) / rounds; share < 0.9 {
			t.Errorf("at %v of capacity: %v", rho, seen)
		}
	}
	if verdict, _ := stats.DriftOf(make([]float64, stats.DriftParts), 0, 30); verdict != stats.DriftUnknown {
		t.Errorf("30 arrivals: %s", verdict)
	}
	if verdict, _ := stats.DriftOf(nil, 0, 0); verdict != stats.DriftUnknown {
		t.Errorf("nothing: %s", verdict)
	}
}
