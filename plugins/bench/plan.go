package bench

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// place is where a target answers and where its own series are.
type place struct {
	url        string
	prometheus string
	namespace  string
	podRegex   string
}

// required are the signals without which a case with Prometheus is not valid.
var required = []string{record.SignalWaiting, record.SignalRunning, record.SignalKVCacheUsage}

// plan turns the flags and the place into the document that decides what runs.
func (o *options) plan(at place, now time.Time) (record.BenchPlan, error) {
	slos, err := record.ParseSLOs(o.slos)
	if err != nil {
		return record.BenchPlan{}, err
	}
	plan := record.BenchPlan{
		TypeMeta:      record.Meta(record.KindBenchPlan),
		Run:           o.runName(now),
		Target:        record.BenchTarget{URL: at.url, API: o.api, Model: o.model, Insecure: o.insecure},
		Cases:         cases(o.prompts, o.outputs, o.concurrency),
		WarmupSeconds: o.warmup.Seconds(), DurationSeconds: o.duration.Seconds(), RequestTimeoutSeconds: o.requestTime.Seconds(),
		Stream: o.stream, Seed: o.seed, SLOs: slos, MaxErrorRate: o.errorRate,
	}
	if o.apiSecret != "" || (o.local && o.streams.Env(keyAPI) != "") {
		plan.Target.APIKeyEnv = keyAPI
	}
	if at.prometheus != "" {
		plan.Prometheus = &record.BenchPrometheus{URL: at.prometheus, Namespace: at.namespace, PodRegex: at.podRegex,
			ScrapeLagSeconds: o.scrapeLag.Seconds(), StepSeconds: o.scrapes.Seconds(), Required: required}
	}
	return plan, plan.Validate()
}

// cases is the matrix of shapes and loads, in the order in which they run.
func cases(prompts, outputs, concurrency []int) []record.BenchCase {
	matrix := []record.BenchCase{}
	for _, prompt := range prompts {
		for _, output := range outputs {
			for _, load := range concurrency {
				matrix = append(matrix, record.BenchCase{
					Name:         fmt.Sprintf("%d-%d-c%d", prompt, output, load),
					PromptTokens: prompt, OutputTokens: output, Concurrency: load,
				})
			}
		}
	}
	return matrix
}

var unfit = regexp.MustCompile(`[^a-z0-9-]+`)

func (o *options) runName(now time.Time) string {
	if o.name != "" {
		return o.name
	}
	base := "url"
	if len(o.target) > 0 {
		parts := strings.Split(o.target[len(o.target)-1], "/")
		base = strings.Trim(unfit.ReplaceAllString(strings.ToLower(parts[len(parts)-1]), "-"), "-")
	}
	return strings.TrimRight(base[:min(len(base), 30)], "-") + "-" + now.UTC().Format("20060102-150405")
}
