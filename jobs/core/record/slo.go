package record

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// SLOMetrics lists the latencies that an objective can limit.
func SLOMetrics() []string { return []string{MetricE2E, MetricTTFT, MetricTPOT, MetricMaxStall} }

// String names the latency as the flag --slo does: p99_e2e.
func (s BenchSLO) String() string {
	return "p" + strconv.FormatFloat(s.Percentile, 'f', -1, 64) + "_" + s.Metric
}

// ParseSLO reads an objective as the flag --slo has it: p99_e2e=30s. The limit
// is a duration, or a number of seconds.
func ParseSLO(text string) (BenchSLO, error) {
	hint := "write PERCENTILE_LATENCY=LIMIT, such as p99_e2e=30s; the latencies are " + strings.Join(SLOMetrics(), ", ")
	refuse := func(cause string) (BenchSLO, error) {
		return BenchSLO{}, failure.New(failure.Usage, hint, "read --slo %q: %s", text, cause)
	}
	name, limit, found := strings.Cut(text, "=")
	percentile, metric, named := strings.Cut(name, "_")
	if !found || !named || !strings.HasPrefix(percentile, "p") {
		return BenchSLO{}, failure.New(failure.Usage, hint, "read --slo: %q is not an objective", text)
	}
	p, err := strconv.ParseFloat(percentile[1:], 64)
	if err != nil || !(p > 0 && p < 100) {
		return refuse(fmt.Sprintf("%s is not a percentile above 0 and below 100", percentile))
	}
	if !slices.Contains(SLOMetrics(), metric) {
		return refuse(fmt.Sprintf("there is no latency %q", metric))
	}
	seconds, err := strconv.ParseFloat(limit, 64)
	if err != nil {
		duration, durationErr := time.ParseDuration(limit)
		if durationErr != nil {
			return refuse(fmt.Sprintf("%q is not a duration", limit))
		}
		seconds = duration.Seconds()
	}
	if !(seconds > 0) || math.IsInf(seconds, 0) {
		return refuse("the limit is not above 0")
	}
	return BenchSLO{Metric: metric, Percentile: p, MaxSeconds: seconds}, nil
}

// ParseSLOs reads objectives; none is an empty list.
func ParseSLOs(texts []string) ([]BenchSLO, error) {
	slos := []BenchSLO{}
	for _, text := range texts {
		slo, err := ParseSLO(text)
		if err != nil {
			return nil, err
		}
		slos = append(slos, slo)
	}
	return slos, nil
}
