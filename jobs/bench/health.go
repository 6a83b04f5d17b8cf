package bench

import (
	"bufio"
	"bytes"
	"io/fs"
	"math"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/stats"
)

const (
	// tick is the period of the ticker whose lateness shows that goroutines wait
	// for a processor.
	tick = 10 * time.Millisecond
	// The client's lateness is held against it where it is more than lagShare of
	// the TTFT, the shortest latency that it falsifies, and more than the floors:
	// in the median the client was the limit, at p99 it is a warning. A p99 of
	// more than the TTFT's own, and than lagWorst, is the limit again.
	lagShare    = 0.20
	lagFloorP50 = 0.005
	lagFloorP99 = 0.020
	lagWorst    = 0.100
)

// healthWatch watches the process while a case runs.
type healthWatch struct {
	quit  chan struct{}
	ended chan healthSample
}

// healthSample is what was seen of the process in a window.
type healthSample struct {
	lag        stats.Sample
	begin, end processState
}

// processState is the state of the process's counters at one moment.
type processState struct {
	cpu       *float64
	throttled *int64
	pauses    *metrics.Float64Histogram
}

// watchHealth watches from begin to end, or until it is stopped.
func watchHealth(deps Deps, begin, end time.Time) *healthWatch {
	w := &healthWatch{quit: make(chan struct{}), ended: make(chan healthSample, 1)}
	go func() {
		var sample healthSample
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		sample.begin = readProcess(deps.Cgroup)
		begun := !deps.Now().Before(begin)
		last := deps.Now()
	watch:
		for {
			select {
			case <-w.quit:
				break watch
			case <-ticker.C:
			}
			now := deps.Now()
			switch {
			case now.After(end):
				break watch
			case !begun && !now.Before(begin):
				begun, sample.begin = true, readProcess(deps.Cgroup)
			case begun:
				sample.lag.Add(max(now.Sub(last)-tick, 0).Seconds())
			}
			last = now
		}
		sample.end = readProcess(deps.Cgroup)
		w.ended <- sample
	}()
	return w
}

// stop ends the watch and describes it.
func (w *healthWatch) stop(slip stats.Sample) record.ClientHealth {
	close(w.quit)
	sample := <-w.ended
	var health record.ClientHealth
	if slip.Count() > 0 {
		health.ScheduleSlipP99Seconds = ptr(slip.Quantile(0.99))
	}
	if sample.lag.Count() > 0 {
		health.TickLagP50Seconds, health.TickLagP99Seconds = ptr(sample.lag.Quantile(0.50)), ptr(sample.lag.Quantile(0.99))
		health.TickLagMaxSeconds = ptr(sample.lag.Max())
	}
	if sample.begin.cpu != nil && sample.end.cpu != nil {
		health.CPUSeconds = ptr(*sample.end.cpu - *sample.begin.cpu)
	}
	if sample.begin.throttled != nil && sample.end.throttled != nil {
		health.ThrottledPeriods = ptr(*sample.end.throttled - *sample.begin.throttled)
	}
	health.GCPauseMaxSeconds = longestPause(sample.begin.pauses, sample.end.pauses)
	return health
}

// limited says whether the client was too slow to be believed.
func limited(report record.CaseReport) bool {
	client, ttft := report.Client, report.Latency.TTFT
	return exceedsShare(client.TickLagP50Seconds, ttft.P50, lagShare, lagFloorP50) ||
		exceedsShare(client.ScheduleSlipP99Seconds, ttft.P99, lagShare, lagFloorP99) ||
		exceedsShare(client.TickLagP99Seconds, ttft.P99, 1, lagWorst)
}

// late says whether the client's lateness shows in the highest latencies.
func late(report record.CaseReport) bool {
	return exceedsShare(report.Client.TickLagP99Seconds, report.Latency.TTFT.P99, lagShare, lagFloorP99)
}

// exceedsShare says whether a lateness is more than the floor and more than a
// share of a latency, where that is known.
func exceedsShare(lateness, latency *float64, share, floor float64) bool {
	if latency != nil {
		floor = max(floor, share**latency)
	}
	return lateness != nil && *lateness > floor
}

const pausesMetric = "/sched/pauses/total/gc:seconds"

func readProcess(cgroup fs.FS) processState {
	sample := []metrics.Sample{{Name: pausesMetric}}
	metrics.Read(sample)
	state := processState{cpu: cpuSeconds(), throttled: throttledPeriods(cgroup)}
	if sample[0].Value.Kind() == metrics.KindFloat64Histogram {
		state.pauses = sample[0].Value.Float64Histogram()
	}
	return state
}

// longestPause is the upper bound of the highest bucket that grew; nil where
// there is no such statistic, 0 where no collection ran.
func longestPause(begin, end *metrics.Float64Histogram) *float64 {
	if begin == nil || end == nil || len(begin.Counts) != len(end.Counts) {
		return nil
	}
	longest := 0.0
	for i := range end.Counts {
		if end.Counts[i] == begin.Counts[i] {
			continue
		}
		longest = end.Buckets[i+1]
		if math.IsInf(longest, 0) {
			longest = end.Buckets[i]
		}
	}
	return &longest
}

// throttledPeriods reads nr_throttled of cpu.stat; nil where there is none.
func throttledPeriods(cgroup fs.FS) *int64 {
	if cgroup == nil {
		return nil
	}
	data, err := fs.ReadFile(cgroup, "cpu.stat")
	if err != nil {
		return nil
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "nr_throttled "); ok {
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				return &n
			}
		}
	}
	return nil
}
