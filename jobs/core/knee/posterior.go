package knee

import (
	"math"
)

// The grid of a posterior: the limit's logarithm in steps of gridStep, and the
// slopes.
const gridStep = 0.004

// slopes are how steeply the log-odds of a miss rise with the logarithm of the
// rate. Near saturation a queue makes them rise by 10 to 50; far from it less.
var slopes = []float64{4, 6, 8, 11, 15, 20, 27, 36, 50, 70}

// posterior is what is known of the rate at which one objective is just met,
// from trials at several rates: near it the log-odds of a miss are a straight
// line in the logarithm of the rate (a logistic dose-response curve), which
// joins what all trials saw instead of letting each decide by itself. Before any
// trial all rates between low and high are as likely.
type posterior struct {
	low     float64 // logarithm of the lowest rate of the grid
	allowed float64
	weights []float64 // of the limit, summed over the slopes; sum 1
	logs    [][]float64
}

func newPosterior(low, high, allowed float64) *posterior {
	p := &posterior{low: math.Log(low), allowed: allowed}
	n := max(int((math.Log(high)-p.low)/gridStep), 1) + 1
	p.logs = make([][]float64, n)
	for i := range p.logs {
		p.logs[i] = make([]float64, len(slopes))
	}
	p.normalise()
	return p
}

func (p *posterior) limit(i int) float64 { return p.low + float64(i)*gridStep }

// add takes in a trial: of requests, missed, each of them worth 1/effect.
func (p *posterior) add(rate float64, of, missed int, effect float64) {
	if of == 0 {
		return
	}
	effect = max(effect, 1)
	n, k := float64(of)/effect, float64(missed)/effect
	base := math.Log(p.allowed / (1 - p.allowed))
	for i := range p.logs {
		for j, slope := range slopes {
			// log of 1/(1+exp(-x)) and of 1/(1+exp(x)), without overflow.
			x := base + slope*(math.Log(rate)-p.limit(i))
			p.logs[i][j] -= k*softplus(-x) + (n-k)*softplus(x)
		}
	}
	p.normalise()
}

func softplus(x float64) float64 {
	if x > 30 {
		return x
	}
	return math.Log1p(math.Exp(x))
}

func (p *posterior) normalise() {
	highest := math.Inf(-1)
	for _, row := range p.logs {
		for _, value := range row {
			highest = max(highest, value)
		}
	}
	p.weights = make([]float64, len(p.logs))
	sum := 0.0
	for i, row := range p.logs {
		for _, value := range row {
			p.weights[i] += math.Exp(value - highest)
		}
		sum += p.weights[i]
	}
	for i := range p.weights {
		p.weights[i] /= sum
	}
}

// lowest is the distribution of the lowest of several limits, on their common
// grid: the objectives hold together up to there.
func lowest(all []*posterior) []float64 {
	n := len(all[0].weights)
	above := make([]float64, n+1) // P(every limit >= i)
	for i := range above {
		above[i] = 1
	}
	for _, one := range all {
		left := 1.0
		for i, weight := range one.weights {
			above[i] *= max(left, 0)
			left -= weight
		}
		above[n] = 0
	}
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = max(above[i]-above[i+1], 0)
	}
	return weights
}

// quantile is the rate below which the limit lies with the given probability.
func (p *posterior) quantile(weights []float64, q float64) float64 {
	sum := 0.0
	for i, weight := range weights {
		if sum += weight; sum >= q {
			return math.Exp(p.limit(i))
		}
	}
	return math.Exp(p.limit(len(weights) - 1))
}
