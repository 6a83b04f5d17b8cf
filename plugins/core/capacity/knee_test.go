package capacity

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestKneeRules(t *testing.T) {
	rules := map[string]func([]Point) (float64, bool){
		"bounds": BoundsKnee, "power": PowerKnee, "kneedle": KneedleKnee, "marginal": MarginalKnee,
	}
	// A batch of 8 that takes 2 s: X = min(N, 8)/2, so every rule has one answer.
	batch := []Point{{1, .5}, {2, 1}, {4, 2}, {8, 4}, {16, 4}, {32, 4}}
	cases := map[string]struct {
		points []Point
		want   map[string]float64
	}{
		"seed":              {seed, map[string]float64{"bounds": 4.94, "power": 5, "kneedle": 10, "marginal": 20}},
		"batch of 8":        {batch, map[string]float64{"bounds": 8, "power": 8, "kneedle": 8, "marginal": 8}},
		"straight line":     {[]Point{{1, 1}, {2, 2}, {4, 4}, {8, 8}}, map[string]float64{"bounds": 8, "power": 8}},
		"flat":              {[]Point{{1, 1}, {2, 1}, {4, 1}}, map[string]float64{"bounds": 1, "power": 1}},
		"falls":             {[]Point{{1, 1}, {2, .8}, {4, .5}}, map[string]float64{"bounds": 1, "power": 1, "kneedle": 1}},
		"no single request": {[]Point{{2, 1}, {4, 1.9}, {8, 2}}, map[string]float64{"power": 4, "kneedle": 4, "marginal": 4}},
		"one load":          {[]Point{{1, 1}}, map[string]float64{}},
		"none":              {nil, map[string]float64{}},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			got := map[string]float64{}
			for rule, find := range rules {
				if n, ok := find(test.points); ok {
					got[rule] = n
				}
			}
			if diff := cmp.Diff(test.want, got, cmpopts.EquateApprox(0, .01)); diff != "" {
				t.Errorf("knees (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGainsOfTheSeed(t *testing.T) {
	want := []float64{.1625, .068, .022, .0045}
	if diff := cmp.Diff(want, Gains(seed), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("gains (-want +got):\n%s", diff)
	}
}

func TestKneesAreIndependentOfTheUnit(t *testing.T) {
	for _, unit := range []float64{1e-6, 60, 1e9} {
		var scaled []Point
		for _, point := range seed {
			scaled = append(scaled, Point{point.N, point.X * unit})
		}
		for name, find := range map[string]func([]Point) (float64, bool){
			"bounds": BoundsKnee, "power": PowerKnee, "kneedle": KneedleKnee, "marginal": MarginalKnee,
		} {
			want, _ := find(seed)
			if got, ok := find(scaled); !ok || math.Abs(got-want) > 1e-9*want {
				t.Errorf("%s in another unit: %g, want %g", name, got, want)
			}
		}
	}
}

func TestResample(t *testing.T) {
	fit, err := FitUSL(seed)
	if err != nil {
		t.Fatal(err)
	}
	loads := Loads(seed)
	band, ok := fit.Resample(seed, loads, 500, rand.New(rand.NewPCG(1, 0)))
	if !ok {
		t.Fatal("no band")
	}
	for i, at := range band.Curve {
		if fitted := fit.At(loads[i]); at.Low > fitted || at.High < fitted || at.High-at.Low > .1 {
			t.Errorf("band at %g is %+v around %g", loads[i], at, fitted)
		}
	}
	if band.Ceiling.Low > 1.63 || band.Ceiling.High < 1.63 {
		t.Errorf("ceiling %+v does not hold 1.63", band.Ceiling)
	}
	if band.Kneedle.Low < 5 || band.Kneedle.High > 20 {
		t.Errorf("kneedle %+v, want within 5 and 20", band.Kneedle)
	}
	again, _ := fit.Resample(seed, loads, 500, rand.New(rand.NewPCG(1, 0)))
	if diff := cmp.Diff(band, again); diff != "" {
		t.Errorf("the same seed gives another band:\n%s", diff)
	}
}

// The band must hold the truth about as often as it says.
func TestResampleCovers(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	truth := USL{Lambda: .5, Sigma: .08, Kappa: .0004}
	held := 0
	const runs = 400
	for range runs {
		var points []Point
		for _, n := range []float64{1, 2, 4, 8, 16, 32, 64} {
			x := truth.At(n)
			points = append(points, Point{n, x + .02*math.Sqrt(x)*random.NormFloat64()})
		}
		fit, err := FitUSL(points)
		if err != nil {
			t.Fatal(err)
		}
		band, ok := fit.Resample(points, []float64{16}, 100, random)
		if !ok {
			t.Fatal("no band")
		}
		if at := band.Curve[0]; at.Low <= truth.At(16) && truth.At(16) <= at.High {
			held++
		}
	}
	t.Logf("the 95 %% band held the truth in %d of %d runs", held, runs)
	if held < runs*92/100 {
		t.Errorf("the 95 %% band held the truth in %d of %d runs", held, runs)
	}
}

func TestResampleNeedsFreedom(t *testing.T) {
	fit := Fit{USL: USL{1, .1, .01}, Free: 3, Residuals: []float64{0, 0, 0}}
	if _, ok := fit.Resample(seed[:3], nil, 100, rand.New(rand.NewPCG(1, 0))); ok {
		t.Error("a band without residual freedom")
	}
}

func TestRounding(t *testing.T) {
	for value, want := range map[float64]float64{1.2134: 1.21, .07899: .0789, 13.19: 13.1, 0.7: .7, 2: 2, 1999: 1990, 0: 0, -1: 0} {
		if got := floor3(value); got != want {
			t.Errorf("floor3(%g) = %g, want %g", value, got, want)
		}
	}
	if number(math.NaN()) != nil || number(math.Inf(1)) != nil {
		t.Error("a number that is none must be null")
	}
	if got := *number(1.0 / 3); got != .333333 {
		t.Errorf("number(1/3) = %v", got)
	}
}
