package bench

import (
	"fmt"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// A closed loop is past saturation where it completes less than flat times as
// much as one of fewer requests in flight, and its latency is more than slower
// times that one's.
const flat, slower = 1.05, 1.2

// saturatedBefore is why a closed loop would show nothing new; "" where it may:
// among those of the same shape that were measured, one with less in flight
// brought little more throughput than another, and only more latency.
func saturatedBefore(plan record.BenchPlan, c record.BenchCase, cases []record.CaseReport) string {
	if !plan.Stops(c).Saturated || c.Open() {
		return ""
	}
	for _, high := range cases {
		if !alike(high.Case, c) || high.Case.Concurrency >= c.Concurrency {
			continue
		}
		for _, low := range cases {
			if !alike(low.Case, c) || low.Case.Concurrency >= high.Case.Concurrency || !low.Validity.Valid || !high.Validity.Valid {
				continue
			}
			before, after := low.Latency.E2E.Mean, high.Latency.E2E.Mean
			if before != nil && after != nil && high.RequestsPerSecond < flat*low.RequestsPerSecond && *after > slower**before {
				return fmt.Sprintf("%d in flight gave %.3g req/s at %.3gs, %d gave %.3g at %.3gs: more only wait longer",
					low.Case.Concurrency, low.RequestsPerSecond, *before, high.Case.Concurrency, high.RequestsPerSecond, *after)
			}
		}
	}
	return ""
}

// alike says whether two closed loops differ in their concurrency alone.
func alike(a, b record.BenchCase) bool {
	return !a.Open() && !b.Open() && a.Shape() == b.Shape() && a.SharedPrefix == nil == (b.SharedPrefix == nil) && a.Sessions == nil == (b.Sessions == nil)
}
