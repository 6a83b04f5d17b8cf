package workload_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/workload"
)

// kolmogorov is sqrt(n) times the largest distance of the sample's distribution
// from the true one; 1.95 is exceeded once in a thousand samples (Smirnov 1948).
func kolmogorov(sample []float64, cdf func(float64) float64) float64 {
	slices.Sort(sample)
	n, worst := float64(len(sample)), 0.0
	for i, x := range sample {
		p := cdf(x)
		worst = max(worst, p-float64(i)/n, float64(i+1)/n-p)
	}
	return worst * math.Sqrt(n)
}

const kolmogorovLimit = 1.95

// erlang is the distribution of a gamma variable of whole shape k and mean 1.
func erlang(k int) func(float64) float64 {
	return func(x float64) float64 {
		term, sum := 1.0, 1.0
		for i := 1; i < k; i++ {
			term *= float64(k) * x / float64(i)
			sum += term
		}
		return 1 - math.Exp(-float64(k)*x)*sum
	}
}

// The gaps of each process have its distribution, for several seeds.
func TestGaps(t *testing.T) {
	tests := map[string]struct {
		arrival workload.Arrival
		cdf     func(float64) float64
	}{
		"poisson":       {workload.Arrival{Process: workload.Poisson, Rate: 5}, erlang(1)},
		"gamma 1":       {workload.Arrival{Process: workload.Gamma, Rate: 5, Burstiness: 1}, erlang(1)},
		"gamma 4, even": {workload.Arrival{Process: workload.Gamma, Rate: 5, Burstiness: 4}, erlang(4)},
		"gamma 0.5, in bursts": {workload.Arrival{Process: workload.Gamma, Rate: 5, Burstiness: 0.5},
			func(x float64) float64 { return math.Erf(math.Sqrt(x / 2)) }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(5) {
				var gaps []float64
				last := 0.0
				for at := range test.arrival.Times(seed, 0, 2000) {
					gaps = append(gaps, (at-last)*5)
					last = at
				}
				if d := kolmogorov(gaps, test.cdf); d > kolmogorovLimit || len(gaps) < 9000 {
					t.Errorf("seed %d: %d gaps, distance %.2f", seed, len(gaps), d)
				}
				// The test can tell them apart.
				if d := kolmogorov(gaps, erlang(2)); d < kolmogorovLimit {
					t.Errorf("seed %d: taken for Erlang 2, distance %.2f", seed, d)
				}
			}
		})
	}
}

// Under a changing rate a Poisson process has in each stretch of time as many
// requests as the rate says (chi-square over stretches of equal expectation).
func TestRampedPoisson(t *testing.T) {
	arrival := workload.Arrival{Process: workload.Poisson, Stages: []workload.Stage{
		{Seconds: 100, FromRate: 0, ToRate: 20}, {Seconds: 50, FromRate: 20, ToRate: 20}, {Seconds: 100, FromRate: 20, ToRate: 0},
	}}
	for seed := range uint64(5) {
		counts := make([]float64, 25)
		for at := range arrival.Times(seed, 0, 250) {
			counts[int(at/10)]++
		}
		chi := 0.0
		for i, n := range counts {
			want := arrival.Expected(float64(i+1)*10) - arrival.Expected(float64(i)*10)
			chi += (n - want) * (n - want) / want
		}
		// 25 degrees of freedom: above 52.6 once in a thousand, below 8.6 too.
		if chi > 52.6 || chi < 8.6 {
			t.Errorf("seed %d: chi-square %.1f of %v", seed, chi, counts)
		}
	}
}

func normal(mean, sd float64) func(float64) float64 {
	return func(x float64) float64 { return 0.5 * math.Erfc(-(x-mean)/(sd*math.Sqrt2)) }
}

func TestDraw(t *testing.T) {
	tests := map[string]func(float64) float64{
		"uniform:100:1099":     func(x float64) float64 { return (x - 99.5) / 1000 },
		"normal:1024:200":      normal(1024, 200),
		"lognormal:2000:1500":  nil,
		"lognormal:20000:4000": nil,
	}
	for text, cdf := range tests {
		t.Run(text, func(t *testing.T) {
			lengths, err := workload.ParseLengths(text)
			if err != nil {
				t.Fatal(err)
			}
			if cdf == nil {
				variance := math.Log1p(lengths.SD * lengths.SD / lengths.Mean / lengths.Mean)
				of := normal(math.Log(lengths.Mean)-variance/2, math.Sqrt(variance))
				cdf = func(x float64) float64 { return of(math.Log(x)) }
			}
			for seed := range uint64(5) {
				random := rand.New(rand.NewPCG(seed, 1))
				sample := make([]float64, 5000)
				for i := range sample {
					// Lengths are whole: spread over the width of a token.
					n := lengths.Draw(random)
					sample[i] = float64(n) + random.Float64() - 0.5
					if n < lengths.Min || n > lengths.Max {
						t.Fatalf("%d is out of bounds", n)
					}
				}
				if d := kolmogorov(sample, cdf); d > kolmogorovLimit {
					t.Errorf("seed %d: distance %.2f", seed, d)
				}
			}
		})
	}
}

func TestDrawHistogram(t *testing.T) {
	lengths, err := workload.ParseLengths("histogram:64=1:1024=3:8192=6")
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(5) {
		random := rand.New(rand.NewPCG(seed, 2))
		counts := map[int]float64{}
		for range 10000 {
			counts[lengths.Draw(random)]++
		}
		chi := 0.0
		for value, want := range map[int]float64{64: 1000, 1024: 3000, 8192: 6000} {
			chi += (counts[value] - want) * (counts[value] - want) / want
		}
		if chi > 13.8 || len(counts) != 3 { // two degrees of freedom, once in a thousand
			t.Errorf("seed %d: chi-square %.1f of %v", seed, chi, counts)
		}
	}
}
