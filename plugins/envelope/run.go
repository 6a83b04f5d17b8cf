package envelope

import (
	"context"
	"io"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/capacity"
)

// run reads the reports, folds them and prints the envelope. An objective that
// no measured load meets makes the answer "no" (exit code 3), after the
// envelope is printed.
func (o *options) run(ctx context.Context) error {
	var sources []capacity.Source
	for _, name := range o.sources {
		reports, err := o.read(ctx, name)
		if err != nil {
			return err
		}
		for _, report := range reports {
			source := capacity.Source{Name: name, Report: report}
			if err := once(sources, source); err != nil {
				return err
			}
			sources = append(sources, source)
		}
	}
	envelope, err := capacity.Envelope(sources, o.capacity)
	if err != nil {
		return err
	}
	err = o.output.Print(o.streams.Out, envelope, func(w io.Writer) error { return render(w, envelope, o.streams.Width()) })
	if err != nil {
		return err
	}
	return broken(envelope)
}

// broken is the failure for the first shape that breaks an objective at its
// lowest load.
func broken(envelope record.CapacityEnvelope) error {
	for _, shape := range envelope.Shapes {
		if withheld := shape.Capacity.XSLO.Withheld; withheld != nil && withheld.Code == "slo_broken" {
			return failure.New(failure.Differs, "measure lower loads, or give the objective more room",
				"meet the objectives at %s: %s", shapeName(shape), withheld.Message)
		}
	}
	return nil
}
