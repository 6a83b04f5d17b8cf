package keda

import (
	"math"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
)

// quantity converts a threshold or a value as KEDA does before it hands it to
// the HPA. Since 2.20 it goes by the text with three decimals (half to even on
// the binary value), before that it was cut off to thousandths, so that 1.005
// was 1004m. What is no number became 0 in 2.20.0, what is negative in 2.20.2.
func quantity(v Version, value float64) resource.Quantity {
	if !v.since(20, 0) {
		return *resource.NewMilliQuantity(int64(value*1000), resource.DecimalSI)
	}
	if math.IsNaN(value) || math.IsInf(value, 0) || value < 0 && v.since(20, 2) {
		return *resource.NewQuantity(0, resource.DecimalSI)
	}
	parsed, err := resource.ParseQuantity(strconv.FormatFloat(value, 'f', 3, 64))
	if err != nil {
		// A number with three decimals always is a quantity.
		return *resource.NewQuantity(0, resource.DecimalSI)
	}
	return parsed
}

// MilliAt is Milli by the rules of a version of KEDA.
func MilliAt(v Version, value float64) int64 {
	if v.since(20, 2) {
		return Milli(value)
	}
	q := quantity(v, value)
	return q.MilliValue()
}

// milliQuantity is a number of thousandths that KEDA computed itself: a fallback
// or a composite value, cut off in every version.
func milliQuantity(milli int64) resource.Quantity {
	return *resource.NewMilliQuantity(milli, resource.DecimalSI)
}
