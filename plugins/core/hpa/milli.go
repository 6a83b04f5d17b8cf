package hpa

import (
	"math"
	"math/big"

	"k8s.io/apimachinery/pkg/api/resource"
)

// milliOf is a quantity in thousandths, rounded up, as the controller wrote it.
// Quantity.MilliValue says 0 for the average of no replicas
// ("-9223372036854775808m"): of a negative number with more than 18 digits it
// keeps the last 64 bits.
func milliOf(quantity resource.Quantity) int64 {
	quantity = quantity.DeepCopy()
	dec := quantity.AsDec()
	milli, exponent := new(big.Int).Set(dec.UnscaledBig()), 3-int64(dec.Scale())
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(max(exponent, -exponent)), nil)
	if exponent >= 0 {
		milli.Mul(milli, power)
	} else {
		rest := new(big.Int)
		milli.DivMod(milli, power, rest)
		if rest.Sign() > 0 {
			milli.Add(milli, big.NewInt(1))
		}
	}
	switch {
	case milli.IsInt64():
		return milli.Int64()
	case milli.Sign() < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}
