package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// The kinds of Lengths.
const (
	LengthFixed     = "fixed"
	LengthUniform   = "uniform"
	LengthNormal    = "normal"
	LengthLognormal = "lognormal"
	LengthHistogram = "histogram"
)

// MaxLength bounds a length in tokens: no model reads more.
const MaxLength = 10_000_000

// The bounds that a bell has where none are given, in standard deviations above
// its mean. A draw outside of its bounds is drawn again.
const (
	normalReach    = 4
	lognormalReach = 10
)

// Lengths is a distribution of lengths in tokens.
type Lengths struct {
	Kind string `json:"kind"`
	// Mean and SD are of the lengths themselves, also for lognormal, and before
	// Min and Max cut off what lies outside; a fixed length is its Mean.
	Mean float64 `json:"mean,omitempty"`
	SD   float64 `json:"sd,omitempty"`
	// Min and Max are inclusive.
	Min int `json:"min"`
	Max int `json:"max"`
	// Values are the lengths of a histogram, Weights how often each comes in
	// proportion to the others.
	Values  []int     `json:"values,omitempty"`
	Weights []float64 `json:"weights,omitempty"`
}

// Fixed is the distribution of one length.
func Fixed(n int) Lengths { return Lengths{Kind: LengthFixed, Mean: float64(n), Min: n, Max: n} }

const lengthsHint = "write a number; or uniform:MIN:MAX, normal:MEAN:SD, lognormal:MEAN:SD (the last two with :MIN:MAX if you like), list:64:128, or histogram:64=3:128=1"

// ParseLengths reads a distribution as the flags have it, such as 1024,
// uniform:64:2048, normal:1024:256, lognormal:1024:512:16:8192,
// list:64:128:1024 or histogram:64=0.5:1024=0.5.
func ParseLengths(text string) (Lengths, error) {
	refuse := func(format string, args ...any) (Lengths, error) {
		return Lengths{}, failure.New(failure.Usage, lengthsHint, "read length %q: "+format, append([]any{text}, args...)...)
	}
	kind, rest, isKind := strings.Cut(text, ":")
	if !isKind {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return refuse("it is not a whole number")
		}
		l := Fixed(n)
		if err := l.Validate(); err != nil {
			return refuse("%w", err)
		}
		return l, nil
	}
	fields := strings.Split(rest, ":")
	l := Lengths{Kind: kind}
	var numbers []float64
	if kind == "list" || kind == LengthHistogram {
		l.Kind = LengthHistogram
		for _, field := range fields {
			value, weight, weighted := strings.Cut(field, "=")
			n, err := strconv.Atoi(value)
			w := 1.0
			if weighted && err == nil {
				w, err = strconv.ParseFloat(weight, 64)
			}
			if err != nil || weighted != (kind == LengthHistogram) {
				return refuse("%q is no part of a %s", field, kind)
			}
			l.Values, l.Weights = append(l.Values, n), append(l.Weights, w)
		}
		l.Min, l.Max = slices.Min(l.Values), slices.Max(l.Values)
	} else {
		for _, field := range fields {
			n, err := strconv.ParseFloat(field, 64)
			if err != nil {
				return refuse("%q is not a number", field)
			}
			numbers = append(numbers, n)
		}
		switch {
		case kind == LengthUniform && len(numbers) == 2:
			l.Min, l.Max = int(numbers[0]), int(numbers[1])
		case (kind == LengthNormal || kind == LengthLognormal) && (len(numbers) == 2 || len(numbers) == 4):
			l.Mean, l.SD, l.Min = numbers[0], numbers[1], 1
			reach := float64(normalReach)
			if kind == LengthLognormal {
				reach = lognormalReach
			}
			l.Max = int(math.Ceil(min(l.Mean+reach*l.SD, MaxLength)))
			if len(numbers) == 4 {
				l.Min, l.Max = int(numbers[2]), int(numbers[3])
			}
		default:
			return refuse("%s with %d numbers is no distribution of lengths", kind, len(numbers))
		}
	}
	if err := l.Validate(); err != nil {
		return refuse("%w", err)
	}
	return l, nil
}

// Validate refuses a distribution that cannot be drawn from.
func (l Lengths) Validate() error {
	finite := func(values ...float64) bool {
		return !slices.ContainsFunc(values, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	}
	switch {
	case l.Min < 1:
		return fmt.Errorf("a length of %d is below 1", l.Min)
	case l.Max > MaxLength:
		return fmt.Errorf("a length of %d is more than %d", l.Max, MaxLength)
	case l.Max < l.Min:
		return fmt.Errorf("the largest length %d is below the smallest %d", l.Max, l.Min)
	case !finite(l.Mean, l.SD) || l.SD < 0:
		return fmt.Errorf("mean %v and standard deviation %v are no distribution", l.Mean, l.SD)
	}
	switch l.Kind {
	case LengthFixed, LengthUniform:
		return nil
	case LengthNormal, LengthLognormal:
		// Otherwise nearly every draw would be cut off.
		if l.Mean < float64(l.Min) || l.Mean > float64(l.Max) {
			return fmt.Errorf("the mean %v is not within %d to %d", l.Mean, l.Min, l.Max)
		}
		return nil
	case LengthHistogram:
		sum := 0.0
		for _, w := range l.Weights {
			if !finite(w) || w < 0 {
				return fmt.Errorf("the weight %v is below 0 or no number", w)
			}
			sum += w
		}
		if len(l.Values) == 0 || len(l.Values) != len(l.Weights) || sum <= 0 || !finite(sum) {
			return fmt.Errorf("it has %d lengths and %d weights with the sum %v", len(l.Values), len(l.Weights), sum)
		}
		if slices.Min(l.Values) < l.Min || slices.Max(l.Values) > l.Max {
			return fmt.Errorf("a length is not within %d to %d", l.Min, l.Max)
		}
		return nil
	}
	return fmt.Errorf("the kind %q is not known", l.Kind)
}

// Draw returns one length.
func (l Lengths) Draw(random *rand.Rand) int {
	switch l.Kind {
	case LengthUniform:
		return l.Min + random.IntN(l.Max-l.Min+1)
	case LengthNormal:
		return l.within(func() float64 { return l.Mean + l.SD*random.NormFloat64() })
	case LengthLognormal:
		// Of the logarithm: variance ln(1 + sd^2/mean^2), mean ln(mean) - variance/2.
		variance := math.Log1p(l.SD * l.SD / (l.Mean * l.Mean))
		mu := math.Log(l.Mean) - variance/2
		return l.within(func() float64 { return math.Exp(mu + math.Sqrt(variance)*random.NormFloat64()) })
	case LengthHistogram:
		sum := 0.0
		for _, w := range l.Weights {
			sum += w
		}
		at := random.Float64() * sum
		for i, w := range l.Weights {
			if at -= w; at < 0 {
				return l.Values[i]
			}
		}
		return l.Values[len(l.Values)-1]
	}
	return l.Min
}

// within draws until a length lies within the bounds; where hardly any does,
// the nearest bound stands in.
func (l Lengths) within(draw func() float64) int {
	n := 0
	for range 100 {
		n = int(math.Round(min(draw(), MaxLength)))
		if n >= l.Min && n <= l.Max {
			return n
		}
	}
	return min(max(n, l.Min), l.Max)
}

// Typical is the length that stands for the distribution in names and tables:
// its mean, without the effect of bounds.
func (l Lengths) Typical() int {
	switch l.Kind {
	case LengthUniform:
		return (l.Min + l.Max) / 2
	case LengthHistogram:
		sum, weights := 0.0, 0.0
		for i, w := range l.Weights {
			sum += w * float64(l.Values[i])
			weights += w
		}
		return max(int(math.Round(sum/weights)), 1)
	}
	return max(int(math.Round(l.Mean)), 1)
}
