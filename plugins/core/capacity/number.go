package capacity

import (
	"math"
	"strconv"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// digits is the precision of the numbers in a document: more would be noise.
const digits = 6

// number rounds v for a document; nil where v is not a finite number.
func number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	v = round(v, digits)
	return &v
}

func round(v float64, significant int) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', significant, 64), 64)
	if err != nil {
		return v
	}
	return rounded
}

// floor3 rounds v down to three significant digits: a threshold that acts a
// little early, never late.
func floor3(v float64) float64 {
	if v <= 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-2)
	return round(math.Floor(v/unit+1e-9)*unit, 3)
}

func (s Span) interval() *record.Interval {
	low, high := number(s.Low), number(s.High)
	if low == nil && high == nil {
		return nil
	}
	return &record.Interval{Low: low, High: high}
}

func notice(code, message string) *record.Notice {
	return &record.Notice{Code: code, Message: message}
}

// short writes a number for people, in three significant digits or all of
// those before the point.
func short(v float64) string {
	if math.Abs(v) >= 1000 {
		return strconv.FormatFloat(math.Round(v), 'f', -1, 64)
	}
	return strconv.FormatFloat(round(v, 3), 'f', -1, 64)
}
