package keda

import (
	"encoding/json"
	"math"
	"strconv"
)

// Reading is what one query of an external trigger gave.
type Reading struct {
	// Value is the trigger's raw value; it decides the activation before it is
	// rounded to thousandths for the HPA.
	Value float64
	// Failure is "" for a value.
	Failure ReadingFailure
	// Empty says that Value stands in for an empty result, NaN or an infinity.
	Empty bool
}

// ReadingFailure says why a query gave no value.
type ReadingFailure string

// The failures of a query.
const (
	// QueryRefused: the server did not answer, or with another status than 2xx.
	QueryRefused ReadingFailure = "refused"
	// QueryUnreadable: the answer is not a list of series; that of scalar() is
	// not either.
	QueryUnreadable ReadingFailure = "unreadable"
	// QueryEmpty: the result is empty, and ignoreNullValues is off.
	QueryEmpty ReadingFailure = "empty"
	// QuerySeveral: the result has more than one series.
	QuerySeveral ReadingFailure = "several_series"
	// QueryNoNumber: the value is no number, NaN or infinite, and
	// ignoreNullValues is off.
	QueryNoNumber ReadingFailure = "no_number"
	// QueryOther: KEDA reported an error, and its cause is not known.
	QueryOther ReadingFailure = "other"
)

// answer is what KEDA decodes of Prometheus's answer. The status inside is not
// looked at.
type answer struct {
	Data struct {
		Result []struct {
			Metric struct{} `json:"metric"`
			Value  []any    `json:"value"`
		} `json:"result"`
	} `json:"data"`
}

// ReadPrometheus reads the answer of Prometheus to a trigger's query as KEDA's
// scaler does. emptyIsZero is ignoreNullValues.
func ReadPrometheus(v Version, status int, body []byte, emptyIsZero bool) Reading {
	if status < 200 || status > 299 {
		return Reading{Failure: QueryRefused}
	}
	var decoded answer
	if err := json.Unmarshal(body, &decoded); err != nil {
		return Reading{Failure: QueryUnreadable}
	}
	series := decoded.Data.Result
	switch {
	case len(series) > 1:
		return Reading{Failure: QuerySeveral}
	case len(series) == 0 || len(series[0].Value) == 0:
		return nothing(emptyIsZero, QueryEmpty)
	case len(series[0].Value) < 2:
		return Reading{Failure: QueryUnreadable}
	}
	return number(v, series[0].Value[1], emptyIsZero)
}

func nothing(isZero bool, failure ReadingFailure) Reading {
	if isZero {
		return Reading{Empty: true}
	}
	return Reading{Failure: failure}
}

// number reads a sample's value. A null stays the -1 that KEDA starts from.
func number(v Version, sample any, emptyIsZero bool) Reading {
	if sample == nil {
		return Reading{Value: -1}
	}
	text, ok := sample.(string)
	if !ok {
		return Reading{Failure: QueryUnreadable}
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return Reading{Failure: QueryNoNumber}
	}
	// NaN was let through before 2.20 (keda#7475).
	if math.IsInf(value, 0) || math.IsNaN(value) && v.since(20, 0) {
		return nothing(emptyIsZero, QueryNoNumber)
	}
	return Reading{Value: value}
}
