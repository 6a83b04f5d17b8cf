package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/prom"
)

// defaultStep is the distance of the samples where the plan names none.
const defaultStep = 5 * time.Second

// readServer waits until the window's last scrape can be read and puts the
// server's own series into the report. missing holds the queries of the signals
// that the server does not have.
func (r *run) readServer(ctx context.Context, report *record.CaseReport) (missing map[string]string, err error) {
	if r.prom == nil || ctx.Err() != nil || report.Window.Seconds <= 0 {
		return nil, ctx.Err()
	}
	from := r.plan.Prometheus
	if wait := report.Window.End.Add(duration(from.ScrapeLagSeconds)).Sub(r.Now()); wait > 0 {
		r.emit(record.Info, EventWait, fmt.Sprintf("case %s: waiting %.0fs for the last scrape", report.Case.Name, wait.Seconds()), nil)
		pause(ctx, wait)
	}
	step := duration(from.StepSeconds)
	if step == 0 {
		step = defaultStep
	}
	series, missing, err := r.prom.Window(ctx, prom.Selector(from.Namespace, from.PodRegex), report.Window.Start, report.Window.End, step)
	report.Server = series
	for _, signal := range record.BenchSignals() {
		if _, have := series[signal]; !have {
			series[signal] = nil
		}
	}
	return missing, err
}
