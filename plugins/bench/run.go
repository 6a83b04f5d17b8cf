package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/runner"
	"github.com/kubectl-inference/kubectl-inference/plugins/jobrun"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
)

// retries is how many pods a run may lose: each goes on where the last one was.
const retries = 6

func (o *options) run(ctx context.Context) error {
	at, err := o.locate(ctx)
	if err != nil {
		return err
	}
	plan, err := o.plan(at, time.Now())
	if err != nil {
		return err
	}
	held, err := o.scaling(ctx, at, &plan)
	if err != nil {
		return err
	}
	if o.dryRun {
		return o.out.Print(o.streams.Out, plan, func(w io.Writer) error { return renderPlan(w, plan) })
	}
	if plan.Target.Insecure {
		o.streams.Warn("the certificate of %s is not verified: anybody on the way can read and change what is sent, the API key too", plan.Target.URL)
	}
	if !o.local {
		if err := checkSize(plan); err != nil {
			return err
		}
	}
	o.streams.Say("%s", cost(plan))
	if o.local {
		return o.runLocal(ctx, plan)
	}
	namespace, err := o.factory.Namespace()
	if err != nil {
		return err
	}
	spec := o.spec(plan.Run, namespace)
	spec.Plan, spec.CallsAPI, spec.Retries = plan, true, retries
	spec.Final = []int32{int32(failure.Failed), int32(failure.Unreachable)}
	o.environment(&spec)
	if at.source != nil {
		spec.SecretEnv, spec.ConfigEnv = append(spec.SecretEnv, at.source.secrets...), append(spec.ConfigEnv, at.source.configs...)
	}
	o.job.Apply(&spec)
	undo := func() error { return nil }
	if held != nil {
		if undo, err = o.holdFor(ctx, at.scaler, *held, spec); err != nil {
			return err
		}
	}
	event, err := o.job.Run(ctx, o.factory, o.streams, spec, false)
	if event == nil && err != nil {
		// The run did not start, so nobody needs the hold.
		return errors.Join(err, undo())
	}
	// A run whose objective was missed has a report all the same.
	if event == nil || (err != nil && failure.KindOf(err) != failure.Differs) {
		return err
	}
	report, reportErr := o.report(ctx, plan.Run)
	if reportErr != nil {
		return errors.Join(err, reportErr)
	}
	if printErr := o.out.Print(o.streams.Out, report, o.writer(report, nextSaved+report.Run)); printErr != nil {
		return printErr
	}
	return err
}

func (o *options) runLocal(ctx context.Context, plan record.BenchPlan) error {
	data, err := json.Marshal(plan)
	if err != nil {
		return err
	}
	var records io.Writer = io.Discard
	closed := func() error { return nil }
	if o.records != "" {
		file, err := os.Create(o.records)
		if err != nil {
			return failure.New(failure.Usage, "", "write --records: %w", err)
		}
		records, closed = file, file.Close
	}
	running := ctx
	if o.job.Timeout > 0 {
		var cancel context.CancelFunc
		running, cancel = context.WithTimeout(ctx, o.job.Timeout)
		defer cancel()
	}
	view := jobrun.NewView(o.streams).WithScreen(screen)
	result, err := runner.LocalBench(running, o.streams.Env, o.version, data, records, view.Event)
	view.Close()
	if ctx.Err() == nil && errors.Is(running.Err(), context.DeadlineExceeded) {
		err = failure.New(failure.Timeout, "the cases that were over, and what there was of the last one, are in the report", "bench %s: stopped after --timeout %v", plan.Run, o.job.Timeout)
	}
	if closeErr := closed(); closeErr != nil {
		err = errors.Join(err, failure.New(failure.Failed, "", "write --records: %w", closeErr))
	}
	if len(result) == 0 {
		return err
	}
	var report record.BenchReport
	if decodeErr := record.Decode(result, record.KindBenchReport, &report); decodeErr != nil {
		return errors.Join(err, decodeErr)
	}
	if printErr := o.out.Print(o.streams.Out, report, o.writer(report, nextLocal)); printErr != nil {
		return printErr
	}
	return err
}

// fetch prints the report of the run that event is the end of.
func (o *options) fetch(ctx context.Context, event record.Event) error {
	var end struct {
		Run string `json:"run"`
	}
	if err := json.Unmarshal(event.Result, &end); err != nil {
		return fmt.Errorf("read the run's result: %w", err)
	}
	report, err := o.report(ctx, end.Run)
	if err != nil {
		return err
	}
	return o.out.Print(o.streams.Out, report, o.writer(report, nextSaved+report.Run))
}

// report reads the report that a run saved.
func (o *options) report(ctx context.Context, run string) (record.BenchReport, error) {
	namespace, err := o.factory.Namespace()
	if err != nil {
		return record.BenchReport{}, err
	}
	client, err := o.factory.Clientset()
	if err != nil {
		return record.BenchReport{}, err
	}
	name := runner.ReportName(run)
	saved, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return record.BenchReport{}, failure.New(failure.NotFound, "`kubectl inference bench list -A` lists the runs; a run has a report when it has ended",
			"read the report of run %s: there is none in namespace %s", run, namespace)
	}
	if err != nil {
		return record.BenchReport{}, kube.Explain(err, "read the report of run %s: get configmap %s/%s", run, namespace, name)
	}
	data, _, err := runner.SavedReport(saved)
	if err != nil {
		return record.BenchReport{}, err
	}
	var report record.BenchReport
	return report, record.Decode(data, record.KindBenchReport, &report)
}
