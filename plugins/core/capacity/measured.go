package capacity

import (
	"fmt"
	"math"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// measured is one usable case, per replica.
type measured struct {
	run      string
	report   record.CaseReport
	replicas float64
}

func (m measured) point() Point {
	return Point{N: m.load(), X: m.report.RequestsPerSecond / m.replicas}
}

// load is the requests in flight per replica: what was asked for or, where
// that was never held, what was measured.
func (m measured) load() float64 {
	asked := float64(m.report.Case.Concurrency)
	if held := m.report.Little.InFlight; !m.report.Window.Steady && held != nil && *held > 0 {
		asked = round(*held, 3)
	}
	return asked / m.replicas
}

func (m measured) rateInterval() *record.Interval {
	low, high := m.report.RequestsPerSecondLow, m.report.RequestsPerSecondHigh
	if low == nil || high == nil {
		return nil
	}
	return &record.Interval{Low: number(*low / m.replicas), High: number(*high / m.replicas)}
}

func (m measured) evidence() record.Evidence {
	return record.Evidence{
		Run:           m.run,
		Case:          m.report.Case.Name,
		Concurrency:   m.load(),
		WindowSeconds: m.report.Window.Seconds,
		Requests:      m.report.Counts.Completed,
		Value:         number(m.point().X),
		Interval:      m.rateInterval(),
	}
}

// signal returns a gauge of the server per replica: the mean is what an
// AverageValue target sees.
func (m measured) signal(name string) (record.SignalAt, bool) {
	series := m.report.Server[name]
	if series == nil || series.Mean == nil {
		return record.SignalAt{}, false
	}
	per := func(v *float64) *float64 {
		if v == nil {
			return nil
		}
		return number(*v / m.replicas)
	}
	return record.SignalAt{Mean: *per(series.Mean), Max: per(series.Max), Min: per(series.Min), Samples: series.Samples}, true
}

// increase returns a counter's growth over the window, summed over replicas.
func (m measured) increase(name string) (float64, bool) {
	series := m.report.Server[name]
	if series == nil || series.Increase == nil {
		return 0, false
	}
	return *series.Increase, true
}

// admit decides whether a case may be used, and for how many replicas it
// speaks. The reason is nil for a case that may.
func admit(run string, report record.CaseReport) (measured, *record.Notice) {
	admitted := measured{run: run, report: report, replicas: 1}
	if !report.Validity.Valid {
		reason := record.Notice{Code: "invalid", Message: "the run marked it as not usable"}
		if len(report.Validity.Reasons) > 0 {
			reason = record.Notice(report.Validity.Reasons[0])
		}
		return admitted, &reason
	}
	switch {
	case report.Client.Limited:
		return admitted, notice("client_limited", "the client was the limit, not the server")
	case report.RequestsPerSecond <= 0 || math.IsInf(report.RequestsPerSecond, 0):
		return admitted, notice("no_requests", "no request was completed in the window")
	case report.Counts.Completed <= 0 || report.Window.Seconds <= 0:
		return admitted, notice("no_evidence", "it states neither how many requests it counted nor for how long")
	case report.Case.Concurrency < 1:
		return admitted, notice("no_load", "it states no concurrency")
	}
	series := report.Server[record.SignalReplicas]
	if series == nil || series.Mean == nil {
		return admitted, nil
	}
	if series.Min != nil && series.Max != nil && *series.Min != *series.Max {
		return admitted, notice("replicas_changed",
			fmt.Sprintf("the number of replicas changed from %s to %s during the window", short(*series.Min), short(*series.Max)))
	}
	if *series.Mean < 1 {
		return admitted, notice("no_replica", "no replica was there during the window")
	}
	admitted.replicas = math.Round(*series.Mean)
	return admitted, nil
}
