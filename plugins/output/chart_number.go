package output

import (
	"math"
	"strconv"
)

// Number writes v for people: three significant digits, more only where they
// stand before the point, no exponent.
func Number(v float64) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	decimals := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	scale := math.Pow(10, float64(max(decimals, 0)))
	return strconv.FormatFloat(math.Round(v*scale)/scale, 'f', -1, 64)
}
