package hpa

import (
	"errors"
	"math"

	corev1 "k8s.io/api/core/v1"
)

// Groups are the pods of one metric, sorted by what the controller makes of
// them. They are bounds where the samples are unknown.
type Groups struct {
	Counted, Unready, Missing, Ignored Range
}

// perPod is the proposal for a metric that pods have samples of.
func (in Input) perPod(p *Proposal) {
	seen := p.Metric.Seen
	switch shown := seen.Average != nil; {
	case seen.Samples != nil && in.Pods != nil:
		in.fromSamples(p)
	case p.Metric.Target == Utilization && seen.Utilization != nil:
		p.Ratio = float64(*seen.Utilization) / float64(int32(p.Metric.TargetMilli))
		in.fromStatus(p)
	case p.Metric.Target == AverageValue && shown:
		p.Ratio = float64(*seen.Average) / float64(p.Metric.TargetMilli)
		in.fromStatus(p)
	default:
		p.Reason = NotSeen
	}
}

// account is the controller's account of a metric in a sync.
type account struct {
	// usage are the samples that count, by pod.
	usage map[string]int64
	// requests are those of all pods; nil unless the target is a utilization.
	requests         map[string]int64
	counted          int
	unready, missing []string
}

// fromSamples carries out the controller's own calculation.
func (in Input) fromSamples(p *Proposal) {
	metric := p.Metric
	books, groups := in.sort(metric)
	p.Groups = &groups
	var err error
	switch {
	case len(in.Pods) == 0:
		p.fail("the selector matches no pod")
		return
	case len(books.usage) == 0:
		p.fail("no pod has a sample that counts: they may not be ready")
		return
	case metric.Target == Utilization:
		if books.requests, err = in.requestsOf(metric); err != nil {
			p.fail(err.Error())
			return
		}
	}
	if p.Ratio, p.Shown, err = books.ratio(metric); err != nil {
		p.fail(err.Error())
		return
	}
	first := p.Ratio
	zeroes := len(books.unready) > 0 && first > 1
	if !zeroes && len(books.missing) == 0 {
		p.Reason = in.reason(first, first)
		n := in.Replicas.Spec
		if p.Reason != WithinTolerance {
			n = sizeOf(math.Ceil(first * float64(books.counted)))
		}
		p.Count = Exactly(n)
		return
	}
	fill, fills := in.fill(metric, first)
	for _, name := range books.missing {
		if fills {
			books.usage[name] = fill(books.requests[name])
		}
	}
	for _, name := range books.unready {
		if zeroes {
			books.usage[name] = 0
		}
	}
	second, _, err := books.ratio(metric)
	if err != nil {
		p.fail(err.Error())
		return
	}
	p.Filled = &second
	n, held := in.refilled(first, second, len(books.usage))
	p.Count, p.Reason = Exactly(n), in.reason(first, first)
	if held && p.Reason != WithinTolerance {
		p.Reason = HeldByPods
	}
}

// sort groups the pods. Samples of pods that the selector does not list any
// more stay in: the controller counts them too.
func (in Input) sort(metric Metric) (account, Groups) {
	books := account{usage: map[string]int64{}}
	for name, sample := range metric.Seen.Samples {
		books.usage[name] = sample.Milli
	}
	gone := int32(0)
	for i := range in.Pods {
		name := in.Pods[i].Name
		var sample *Sample
		if found, ok := metric.Seen.Samples[name]; ok {
			sample = &found
		}
		switch in.standingOf(&in.Pods[i], metric.isCPU(), in.Now, sample) {
		case ignored:
			delete(books.usage, name)
			gone++
		case unready:
			delete(books.usage, name)
			books.unready = append(books.unready, name)
		case missing:
			books.missing = append(books.missing, name)
		default:
			books.counted++
		}
	}
	return books, Groups{
		Counted: Exactly(int32(books.counted)), Ignored: Exactly(gone),
		Unready: Exactly(int32(len(books.unready))), Missing: Exactly(int32(len(books.missing))),
	}
}

// ratio is value over target: of whole percents for a utilization, of the
// truncated average for a plain value. The status shows the same numbers.
func (b account) ratio(metric Metric) (float64, Shown, error) {
	var usage, requests, pods int64
	for name, milli := range b.usage {
		request, found := b.requests[name]
		if b.requests != nil && !found {
			continue
		}
		usage += milli
		requests += request
		pods++
	}
	if b.requests == nil {
		average := usage / pods
		return float64(average) / float64(metric.TargetMilli), Shown{Average: &average}, nil
	}
	if requests == 0 {
		return math.NaN(), Shown{}, errors.New("no sample belongs to a pod with a request")
	}
	average, percent := usage/pods, int32(usage*100/requests)
	return float64(percent) / float64(int32(metric.TargetMilli)), Shown{Average: &average, Utilization: &percent}, nil
}

// fill returns what a pod without a sample is taken to use, given its request:
// all of it where less is needed, nothing where more is. At a ratio of exactly
// one nothing is filled in, but for plain values in 1.27.
func (in Input) fill(metric Metric, ratio float64) (usage func(request int64) int64, fills bool) {
	switch {
	case ratio < 1 && metric.Target == Utilization:
		percent := max(100, metric.TargetMilli)
		return func(request int64) int64 { return request * percent / 100 }, true
	case ratio < 1:
		return func(int64) int64 { return metric.TargetMilli }, true
	case ratio > 1, metric.Target != Utilization && !in.Version.since(28):
		return func(int64) int64 { return 0 }, true
	}
	return nil, false
}

// refilled is the size after pods without samples were filled in, from the
// ratios before and after; held says that the size is kept as it is because the
// fill changes the direction, or takes away the reason.
func (in Input) refilled(first, second float64, pods int) (n int32, held bool) {
	spec := in.Replicas.Spec
	if in.tolerances().within(second) || (first < 1 && second > 1) || (first > 1 && second < 1) {
		return spec, true
	}
	n = sizeOf(math.Ceil(second * float64(pods)))
	if (second < 1 && n > spec) || (second > 1 && n < spec) {
		return spec, true
	}
	return n, false
}

// isCPU says whether starting pods are left out.
func (m Metric) isCPU() bool {
	return (m.Type == Resource || m.Type == ContainerResource) && m.Name == string(corev1.ResourceCPU)
}
