package capacity

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// seed is the published table of the seed platform: one replica, 1024 prompt
// and 128 output tokens.
var seed = []Point{{1, .33}, {5, .98}, {10, 1.32}, {20, 1.54}, {40, 1.63}}

func near(t *testing.T, name string, got, want, relative float64) {
	t.Helper()
	if math.Abs(got-want) > relative*math.Abs(want) {
		t.Errorf("%s = %.6g, want %.6g within %.2g %%", name, got, want, 100*relative)
	}
}

func TestFitUSLKnownAnswer(t *testing.T) {
	fit, err := FitUSL(seed)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "lambda", fit.Lambda, .328, .05)
	near(t, "sigma", fit.Sigma, .162, .05)
	near(t, "kappa", fit.Kappa, .00047, .05)
	near(t, "peak", fit.Peak(), 42, .05)
	near(t, "ceiling", fit.Ceiling(), 1.63, .01)
	for i, residual := range fit.Residuals {
		if math.Abs(residual) > .01 {
			t.Errorf("residual at N=%g is %g, want within 0.01", seed[i].N, residual)
		}
	}
	t.Logf("%+v", fit)
}

func TestFitUSLRecoversItsParameters(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		want := USL{
			Lambda: math.Exp(random.Float64()*10 - 5),
			Sigma:  random.Float64() * .5,
			Kappa:  math.Exp(random.Float64()*8 - 12),
		}
		var points []Point
		for _, n := range []float64{1, 2, 5, 12, 30, 70} {
			points = append(points, Point{n, want.At(n)})
		}
		fit, err := FitUSL(points)
		if err != nil {
			t.Fatalf("%+v: %v", want, err)
		}
		near(t, "lambda", fit.Lambda, want.Lambda, 1e-6)
		near(t, "sigma", fit.Sigma, want.Sigma, 1e-4)
		near(t, "kappa", fit.Kappa, want.Kappa, 1e-4)
	}
}

func TestFitUSLIsIndependentOfTheUnit(t *testing.T) {
	base, err := FitUSL(seed)
	if err != nil {
		t.Fatal(err)
	}
	for _, unit := range []float64{1e-6, 1. / 60, 60, 3600, 1e9} {
		var scaled []Point
		for _, point := range seed {
			scaled = append(scaled, Point{point.N, point.X * unit})
		}
		fit, err := FitUSL(scaled)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "lambda", fit.Lambda, base.Lambda*unit, 1e-6)
		near(t, "sigma", fit.Sigma, base.Sigma, 1e-6)
		near(t, "kappa", fit.Kappa, base.Kappa, 1e-6)
	}
}

func TestFitUSLUnderNoise(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	want := USL{Lambda: .5, Sigma: .08, Kappa: .0004}
	within := 0
	const runs = 200
	for range runs {
		var points []Point
		for _, n := range []float64{1, 2, 4, 8, 16, 32, 64} {
			points = append(points, Point{n, want.At(n) * (1 + .02*random.NormFloat64())})
		}
		fit, err := FitUSL(points)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(fit.Ceiling()/want.Ceiling()-1) < .05 {
			within++
		}
	}
	if within < runs*95/100 {
		t.Errorf("ceiling within 5 %% in %d of %d runs with 2 %% noise, want 95 %%", within, runs)
	}
}

func TestFitUSLStaysPhysical(t *testing.T) {
	cases := map[string]struct {
		points    []Point
		wantPeak  float64
		wantKappa float64
	}{
		"straight line":        {[]Point{{1, 2}, {2, 4}, {4, 8}, {8, 16}}, math.Inf(1), 0},
		"faster than linear":   {[]Point{{1, 2}, {2, 4.4}, {4, 9.6}, {8, 21}}, math.Inf(1), 0},
		"contention only":      {[]Point{{1, 1}, {2, 2 / 1.1}, {4, 4 / 1.3}, {8, 8 / 1.7}}, math.Inf(1), 0},
		"step at a batch of 4": {[]Point{{1, 1}, {2, 2}, {4, 4}, {8, 4}, {16, 4}}, 0, -1},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			fit, err := FitUSL(test.points)
			if err != nil {
				t.Fatal(err)
			}
			if fit.Lambda <= 0 || fit.Sigma < 0 || fit.Kappa < 0 {
				t.Errorf("not physical: %+v", fit.USL)
			}
			if test.wantKappa == 0 && fit.Kappa > 1e-9 {
				t.Errorf("kappa = %g, want 0", fit.Kappa)
			}
			if math.IsInf(test.wantPeak, 1) && fit.Peak() < 1e3 {
				t.Errorf("peak = %g, want none", fit.Peak())
			}
		})
	}
}

func TestFitUSLRefuses(t *testing.T) {
	cases := map[string]struct {
		points []Point
		want   error
	}{
		"nothing":           {nil, ErrFewPoints},
		"three loads":       {seed[:3], ErrFewPoints},
		"repeats of 3":      {append(append([]Point{}, seed[:3]...), seed[:3]...), ErrFewPoints},
		"zero throughput":   {[]Point{{1, 0}, {2, 0}, {3, 0}, {4, 0}}, ErrNoFit},
		"negative measured": {[]Point{{1, -1}, {2, 1}, {3, 1}, {4, 1}}, ErrNoFit},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := FitUSL(test.points); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
	}
}

func TestLeaveOneOut(t *testing.T) {
	mean, worst, ok := LeaveOneOut(seed)
	if !ok || mean <= 0 || worst < mean {
		t.Fatalf("mean %g, worst %g, ok %v", mean, worst, ok)
	}
	t.Logf("seed: mean %.3f, worst %.3f", mean, worst)
	exact := USL{1, .1, .001}
	var points []Point
	for _, n := range []float64{1, 3, 9, 27, 60} {
		points = append(points, Point{n, exact.At(n)})
	}
	if _, worst, ok = LeaveOneOut(points); !ok || worst > 1e-5 {
		t.Errorf("worst = %g, ok = %v on exact points, want 0", worst, ok)
	}
	if _, _, ok = LeaveOneOut(seed[:3]); ok {
		t.Error("a hold-out error from three loads")
	}
}
