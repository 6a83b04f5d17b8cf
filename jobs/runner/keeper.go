package runner

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-inference/kubectl-inference/jobs/bench"
	"github.com/kubectl-inference/kubectl-inference/jobs/cluster"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// checkpointTime is how long the next case may be held up to keep the last.
const checkpointTime = 30 * time.Second

// keeper keeps a run's report in its ConfigMap, so that neither a finished case
// is lost with its pod nor repeated by the next.
type keeper struct {
	client kubernetes.Interface
	pod    cluster.Pod
	name   string
	emit   func(record.Event)
}

// load returns what an earlier pod of the Job has kept, or nil.
func (k keeper) load(ctx context.Context) (*record.BenchReport, error) {
	data, err := cluster.Load(ctx, k.client, k.pod, k.name, ReportKey)
	if err != nil || data == nil {
		return nil, err
	}
	var report record.BenchReport
	if err := record.Decode(data, record.KindBenchReport, &report); err != nil {
		return nil, failure.Wrap(err, "go on with the run")
	}
	return &report, nil
}

func (k keeper) checkpoint(ctx context.Context, report record.BenchReport) error {
	ctx, cancel := context.WithTimeout(ctx, checkpointTime)
	defer cancel()
	return k.save(ctx, report)
}

// save keeps the report. One that is too large for a ConfigMap is kept without
// the histograms, which only merging with other reports needs.
func (k keeper) save(ctx context.Context, report record.BenchReport) error {
	err := cluster.Save(ctx, k.client, k.pod, k.name, ReportKey, report, false)
	if !errors.Is(err, cluster.ErrTooLarge) {
		return err
	}
	k.emit(record.Event{Level: record.Warning, Name: bench.EventKeep, Message: "the report is kept without its histograms: with them it is larger than a ConfigMap can be"})
	return cluster.Save(ctx, k.client, k.pod, k.name, ReportKey, withoutHistograms(report), false)
}

func withoutHistograms(report record.BenchReport) record.BenchReport {
	cases := make([]record.CaseReport, len(report.Cases))
	for i, one := range report.Cases {
		l := &one.Latency
		for _, summary := range []*record.LatencySummary{&l.TTFT, &l.TTFTEff, &l.TTFOT, &l.TPOT, &l.ICL, &l.ITL, &l.E2E, &l.E2EEff, &l.MaxStall} {
			summary.Histogram = nil
		}
		cases[i] = one
	}
	report.Cases = cases
	return report
}

// SavedReport returns the report in a run's ConfigMap; ok is false where there
// is none yet.
func SavedReport(configMap *corev1.ConfigMap) (report []byte, ok bool, err error) {
	return cluster.Document(configMap, ReportKey)
}
