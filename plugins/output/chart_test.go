package output

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/test/golden"
)

func TestChart(t *testing.T) {
	line := Series{Name: "line", Line: true, X: []float64{0, 10}, Y: []float64{0, 100}}
	points := Series{Name: "points", Mark: '●', X: []float64{1, 5, 10}, Y: []float64{10, 50, 100}}
	cases := map[string]Chart{
		"line.txt":   {Title: "A LINE", Width: 40, Height: 9, XLabel: "n", XTicks: []float64{0, 5, 10}, Series: []Series{line}},
		"points.txt": {Title: "POINTS", Width: 40, Height: 9, XLabel: "n", XTicks: []float64{1, 5, 10}, Series: []Series{points, line}},
		"rules.txt": {
			Title: "RULES", Width: 40, Height: 9, XTicks: []float64{1, 5, 9, 10}, YMax: 120,
			Series: []Series{points}, Upright: []Rule{{At: 7.5, Label: "plan: 7.5 a second"}, {At: 2.5, Label: "here"}}, Level: []Rule{{At: 75, Label: "limit 75"}},
		},
		"crowded.txt": {Title: "CROWDED", Width: 40, Height: 5, XTicks: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256}, Series: []Series{{Mark: '●', X: []float64{256}, Y: []float64{.004}}}},
		"empty.txt":   {Title: "EMPTY", Width: 20, Height: 4},
		"zero.txt":    {Title: "ZERO", Width: 20, Height: 4, Series: []Series{{Mark: '●', X: []float64{0, 0}, Y: []float64{0, 0}}}},
	}
	for name, chart := range cases {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			if err := chart.Write(&text, "  "); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, name, text.String())
		})
	}
}

// No data may break the frame: every line stays within the width, and the
// plot keeps its height.
func TestChartKeepsItsFrame(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		chart := Chart{Title: "T", Width: 10 + random.IntN(80), Height: 3 + random.IntN(20), XLabel: "c"}
		series := Series{Name: "s", Line: random.IntN(2) == 0, Mark: '●'}
		for range random.IntN(8) {
			series.X = append(series.X, math.Exp(random.Float64()*20-10))
			series.Y = append(series.Y, math.Exp(random.Float64()*20-10))
			chart.XTicks = append(chart.XTicks, series.X[len(series.X)-1])
		}
		chart.Series = []Series{series}
		chart.Upright = []Rule{{At: random.Float64() * 10, Label: "a rule"}}
		chart.Level = []Rule{{At: random.Float64() * 10, Label: "a limit"}}
		var text strings.Builder
		if err := chart.Write(&text, ""); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
		if len(lines) != chart.Height+3 {
			t.Fatalf("%d lines for height %d:\n%s", len(lines), chart.Height, text.String())
		}
		frame := lipgloss.Width(lines[len(lines)-2])
		for _, line := range lines[1 : len(lines)-1] {
			if lipgloss.Width(line) > frame {
				t.Fatalf("a line is wider than the frame:\n%s", text.String())
			}
		}
	}
}

func TestTicks(t *testing.T) {
	cases := map[string]struct {
		high float64
		n    int
		want []float64
	}{
		"halves":   {1.63, 4, []float64{0, .5, 1, 1.5, 2}},
		"tens":     {35.5, 4, []float64{0, 10, 20, 30, 40}},
		"exact":    {100, 2, []float64{0, 50, 100}},
		"small":    {.004, 2, []float64{0, .002, .004}},
		"nothing":  {0, 4, []float64{0, 1}},
		"infinite": {math.Inf(1), 4, []float64{0, 1}},
		"nan":      {math.NaN(), 4, []float64{0, 1}},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			got := Ticks(test.high, test.n)
			for i := range got {
				got[i] = math.Round(got[i]*1e9) / 1e9
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("ticks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", 1.6308: "1.63", 4.9394: "4.94", 42.2525: "42.3", 1879.4: "1879", 1234567: "1234567",
		.00046962: "0.00047", .9999: "1", -.5: "-0.5", 1e-9: "0.000000001", math.Inf(1): "+Inf",
	} {
		if got := Number(v); got != want {
			t.Errorf("Number(%v) = %s, want %s", v, got, want)
		}
	}
}
