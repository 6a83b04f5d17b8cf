package capacity

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// Source is a report and where it was read.
type Source struct {
	Name   string
	Report record.BenchReport
}

// Options are what the user decides.
type Options struct {
	// SLOs are the objectives; where there are none, those that every report's
	// plan had.
	SLOs []record.BenchSLO
	// Headroom is the share kept free, 0 to below 1.
	Headroom float64
	// Tolerance is the HPA's, 0.1 by default in Kubernetes.
	Tolerance float64
	Checks    []Check
	// Resamples and Seed decide the intervals.
	Resamples int
	Seed      uint64
}

// DefaultOptions are the options of a user who gave none.
func DefaultOptions() Options {
	return Options{Headroom: 0.1, Tolerance: 0.1, Resamples: 1000, Seed: 1}
}

// standard are the latencies kept for every level.
func standard() []record.BenchSLO {
	var all []record.BenchSLO
	for _, metric := range []string{record.MetricE2E, record.MetricTTFT, record.MetricTPOT} {
		for _, percentile := range []float64{50, 95, 99} {
			all = append(all, record.BenchSLO{Metric: metric, Percentile: percentile})
		}
	}
	return all
}

// Envelope folds reports into a capacity envelope. It refuses reports of
// different models, and reports without any case; everything else that is
// missing is withheld in the document, with its reason.
func Envelope(sources []Source, options Options) (record.CapacityEnvelope, error) {
	envelope := record.CapacityEnvelope{
		TypeMeta:  record.Meta(record.KindCapacityEnvelope),
		Runs:      []record.EnvelopeRun{},
		SLOs:      []record.BenchSLO{},
		Headroom:  options.Headroom,
		Tolerance: options.Tolerance,
		Bootstrap: record.Bootstrap{Resamples: options.Resamples, Seed: options.Seed, Level: Level},
		Shapes:    []record.ShapeEnvelope{},
	}
	shapes := map[[2]int]*shape{}
	for i, source := range sources {
		report := source.Report
		if i > 0 && report.Target.Model != envelope.Model {
			return envelope, failure.New(failure.Usage, "give the reports of one model",
				"join reports: %s measured model %q, %s measured %q", sources[0].Name, envelope.Model, source.Name, report.Target.Model)
		}
		envelope.Model = report.Target.Model
		envelope.Runs = append(envelope.Runs, record.EnvelopeRun{
			Run: report.Run, Source: source.Name, ToolVersion: report.ToolVersion, Cases: len(report.Cases),
		})
		for _, one := range report.Cases {
			key := [2]int{one.Case.PromptTokens, one.Case.OutputTokens}
			if shapes[key] == nil {
				shapes[key] = &shape{prompt: key[0], output: key[1]}
			}
			shapes[key].add(report.Run, one)
		}
	}
	if len(shapes) == 0 {
		return envelope, failure.New(failure.Usage, "was the run ended before its first case?", "read reports: they hold no case")
	}
	envelope.SLOs = append(envelope.SLOs, objectives(sources, options)...)
	for _, one := range sorted(shapes) {
		envelope.Shapes = append(envelope.Shapes, one.envelope(envelope.SLOs, options))
	}
	return envelope, nil
}

// objectives are the user's or, without any, those of the plans if they agree.
func objectives(sources []Source, options Options) []record.BenchSLO {
	if len(options.SLOs) > 0 {
		return options.SLOs
	}
	common := sources[0].Report.Plan.SLOs
	for _, source := range sources[1:] {
		if !slices.Equal(source.Report.Plan.SLOs, common) {
			return nil
		}
	}
	return common
}

func sorted(shapes map[[2]int]*shape) []*shape {
	var all []*shape
	for _, one := range shapes {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b *shape) int {
		return cmp.Or(cmp.Compare(a.prompt, b.prompt), cmp.Compare(a.output, b.output))
	})
	return all
}

// shape gathers the cases of one token shape.
type shape struct {
	prompt, output int
	cases          []measured
	excluded       []record.ExcludedCase
}

func (s *shape) add(run string, report record.CaseReport) {
	one, reason := admit(run, report)
	if reason != nil {
		s.excluded = append(s.excluded, record.ExcludedCase{Run: run, Case: report.Case.Name, Reason: *reason})
		return
	}
	s.cases = append(s.cases, one)
}

func (s *shape) envelope(slos []record.BenchSLO, options Options) record.ShapeEnvelope {
	result := record.ShapeEnvelope{
		PromptTokens: s.prompt, OutputTokens: s.output,
		Levels: []record.CapacityLevel{}, Excluded: append([]record.ExcludedCase{}, s.excluded...),
		Knees: []record.Knee{}, Thresholds: []record.Threshold{}, Checks: []record.ThresholdCheck{},
		NextLoads: []record.NextLoad{}, Warnings: []record.Notice{},
	}
	all := levels(s.cases, append(standard(), slos...))
	if len(all) == 0 {
		none := notice("no_case", "no case of this shape may be used")
		result.Fit = record.USLFit{Withheld: none, Residuals: []float64{}, Curve: []record.CurvePoint{}}
		withheld := record.Rate{Withheld: none, Evidence: []record.Evidence{}}
		result.Capacity = record.Capacity{XMax: withheld, XSustain: withheld, XSLO: withheld, XPlan: withheld}
		return result
	}
	random := rand.New(rand.NewPCG(options.Seed, uint64(s.prompt)<<32|uint64(s.output)))
	fitted, band := s.fit(all, &result, options, random)
	result.Knees = knees(all, slos, band)
	result.KneeRange = kneeRange(result.Knees)

	sustain, _ := sustained(all)
	slo, holds := objective(all, slos)
	plan := planned(all, sustain, slo, slos, options.Headroom)
	result.Capacity = record.Capacity{XMax: maximum(all, fitted, band), XSustain: sustain, XSLO: slo, XPlan: plan}
	for _, rate := range []*record.Rate{&result.Capacity.XSustain, &result.Capacity.XSLO, &result.Capacity.XPlan} {
		if rate.Evidence == nil {
			rate.Evidence = []record.Evidence{}
		}
	}
	for _, one := range triggers() {
		result.Thresholds = append(result.Thresholds, one.threshold(all, plan, options.Tolerance))
	}
	for _, check := range options.Checks {
		result.Checks = append(result.Checks, check.run(all, options.Tolerance))
	}
	result.NextLoads = append(result.NextLoads, nextLoads(all, holds, plan)...)
	result.Warnings = append(result.Warnings, warnings(all, s.cases)...)
	for _, l := range all {
		result.Levels = append(result.Levels, l.CapacityLevel)
	}
	return result
}

// curvePoints is the number of points of the drawn curve.
const curvePoints = 48

// fit fits the law to every case (repeats count each), writes the result and
// marks the levels.
func (s *shape) fit(all []level, result *record.ShapeEnvelope, options Options, random *rand.Rand) (*Fit, *Band) {
	var cloud []Point
	for _, l := range all {
		for _, one := range l.cases {
			cloud = append(cloud, one.point())
		}
	}
	result.Fit = record.USLFit{Points: len(cloud), Residuals: []float64{}, Curve: []record.CurvePoint{}}
	fitted, err := FitUSL(cloud)
	if err != nil {
		result.Fit.Withheld = notice("no_fit", fmt.Sprintf("%v, measured: %d", err, len(all)))
		return nil, nil
	}
	out := &result.Fit
	out.Lambda, out.Sigma, out.Kappa = number(fitted.Lambda), number(fitted.Sigma), number(fitted.Kappa)
	out.Peak, out.R2 = number(fitted.Peak()), number(fitted.R2)
	for _, residual := range fitted.Residuals {
		out.Residuals = append(out.Residuals, *number(residual))
	}
	if mean, worst, ok := LeaveOneOut(cloud); ok {
		out.HoldOutMean, out.HoldOutWorst = number(mean), number(worst)
	}
	loads := Loads(cloud)
	grid := append([]float64{}, loads...)
	first, last := loads[0], loads[len(loads)-1]
	for i := range curvePoints {
		grid = append(grid, first+(last-first)*float64(i)/(curvePoints-1))
	}
	band, ok := fitted.Resample(cloud, grid, options.Resamples, random)
	if ok {
		out.LambdaInterval, out.SigmaInterval, out.KappaInterval = band.Lambda.interval(), band.Sigma.interval(), band.Kappa.interval()
		out.PeakInterval = band.Peak.interval()
	}
	interval := func(i int) *record.Interval {
		if !ok {
			return nil
		}
		return band.Curve[i].interval()
	}
	for i := range all {
		all[i].FittedPerSecond, all[i].FittedInterval = number(fitted.At(loads[i])), interval(i)
	}
	for i, load := range grid[len(loads):] {
		out.Curve = append(out.Curve, record.CurvePoint{
			Concurrency: *number(load), RequestsPerSecond: *number(fitted.At(load)), Interval: interval(len(loads) + i),
		})
	}
	if !ok {
		return &fitted, nil
	}
	return &fitted, &band
}
