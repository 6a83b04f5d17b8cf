package record

import (
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// KindBenchPlan is the kind of a BenchPlan.
const KindBenchPlan = "BenchPlan"

// BenchPlan is everything that decides what a measuring run does: two runs of
// one plan send the same prompts in the same order.
type BenchPlan struct {
	TypeMeta
	// Run names the run: its report, its records, its Job.
	Run    string      `json:"run"`
	Target BenchTarget `json:"target"`
	// Profile says what the run is for; nil where nobody said it.
	Profile *BenchProfile `json:"profile,omitempty"`
	// Cases run one after the other, in this order.
	Cases []BenchCase `json:"cases"`
	// WarmupSeconds is the time under load before a case's window may start,
	// DurationSeconds the time after it until the senders stop.
	WarmupSeconds   float64 `json:"warmup_seconds"`
	DurationSeconds float64 `json:"duration_seconds"`
	// RequestTimeoutSeconds limits one request from send to end.
	RequestTimeoutSeconds float64 `json:"request_timeout_seconds"`
	// IdleTimeoutSeconds limits the wait for the response header and between
	// two reads of a body; 0 means RequestTimeoutSeconds alone.
	IdleTimeoutSeconds float64 `json:"idle_timeout_seconds"`
	Temperature        float64 `json:"temperature"`
	Stream             bool    `json:"stream"`
	// ContinuousUsage asks for the token count on every chunk, which makes ITL
	// known. It is vLLM's extension and costs the server some work.
	ContinuousUsage bool `json:"continuous_usage"`
	// Seed and Run decide every random choice. Another run has other prompts, so
	// it finds nothing of this one in the server's prefix cache.
	Seed uint64 `json:"seed"`
	// SLOs are the objectives that goodput is counted against.
	SLOs []BenchSLO `json:"slos"`
	// Prometheus is where the server's own series are; nil leaves them out.
	Prometheus *BenchPrometheus `json:"prometheus"`
	// Scaling says what became of the target's autoscaler while it was measured;
	// nil where none was found, or none was looked for.
	Scaling *BenchScaling `json:"scaling,omitempty"`
	// MaxErrorRate is the share of failed requests, 0 to 1, above which a case
	// is not usable and the run ends with exit code 3.
	MaxErrorRate float64 `json:"max_error_rate"`
	// MinGoodput is the share of good requests, 0 to 1, below which a case ends
	// the run with exit code 3; 0 asks for none.
	MinGoodput float64 `json:"min_goodput,omitempty"`
	// Stop are the rules by which cases end early; nil for none.
	Stop *StopRules `json:"stop,omitempty"`
	// FindKnee searches for the highest rate in place of Cases.
	FindKnee *KneeSearch `json:"find_knee,omitempty"`
}

// What becomes of an autoscaler during a run.
const (
	ScalingHeld    = "held"
	ScalingAllowed = "allowed"
)

// BenchScaling is the autoscaler of the target during a run.
type BenchScaling struct {
	// Mode is ScalingHeld or ScalingAllowed.
	Mode string `json:"mode"`
	// Object is what scales, as KIND/NAME.
	Object string `json:"object"`
	// Replicas is the number that is held; 0 where scaling is allowed.
	Replicas int32 `json:"replicas,omitempty"`
}

// The protocols of a BenchTarget.
const (
	APICompletions = "completions"
	APIChat        = "chat"
)

// The versions of HTTP of a BenchTarget.
const (
	HTTP1      = "1.1"
	HTTP2      = "2"
	HTTP2Clear = "h2c"
)

// BenchTarget is the server under load.
type BenchTarget struct {
	// URL is the base of the API, with or without its /v1: requests go to
	// URL/v1/completions or URL/v1/chat/completions.
	URL string `json:"url"`
	// API is APICompletions or APIChat. Only completions take token ids, so
	// only there a prompt's length is exact.
	API string `json:"api"`
	// Model is the model's id; empty asks /v1/models.
	Model string `json:"model"`
	// Insecure accepts any TLS certificate.
	Insecure bool `json:"insecure"`
	// HTTP is the protocol: HTTP1, HTTP2 (over TLS) or HTTP2Clear (over plain
	// TCP, without an upgrade); empty is HTTP1.
	HTTP string `json:"http,omitempty"`
	// CA holds the certificates (PEM) of the authorities to trust besides those
	// of the system; CAEnv names an environment variable that holds more.
	CA    string `json:"ca,omitempty"`
	CAEnv string `json:"ca_env,omitempty"`
	// Headers are sent with every request. Credentials have no place in them.
	Headers map[string]string `json:"headers,omitempty"`
	// APIKeyEnv names the environment variable that holds the API key. The key
	// itself is never part of a document.
	APIKeyEnv string `json:"api_key_env"`
}

// The latencies that an objective can limit.
const (
	MetricTTFT     = "ttft"
	MetricTPOT     = "tpot"
	MetricE2E      = "e2e"
	MetricMaxStall = "max_stall"
)

// BenchSLO is an objective for one latency. A request is good where it is
// within MaxSeconds of every objective; an operating point meets the objective
// where Percentile of the requests do.
type BenchSLO struct {
	Metric     string  `json:"metric"`
	Percentile float64 `json:"percentile"`
	MaxSeconds float64 `json:"max_seconds"`
}

// BenchPrometheus says where the server's own series are.
type BenchPrometheus struct {
	URL       string `json:"url"`
	Namespace string `json:"namespace"`
	// PodRegex selects the replicas' pods, anchored as Prometheus does.
	PodRegex string `json:"pod_regex"`
	// ScrapeLagSeconds is how long after a window its last scrape can be read.
	ScrapeLagSeconds float64 `json:"scrape_lag_seconds"`
	// StepSeconds is the distance of the samples in a window.
	StepSeconds float64 `json:"step_seconds"`
	// Required lists the signals without which a case is not valid.
	Required []string `json:"required"`
	// Insecure accepts any TLS certificate. TokenEnv names the environment
	// variable that holds a bearer token.
	Insecure bool   `json:"insecure"`
	TokenEnv string `json:"token_env"`
	// Auth is what the trigger that names this server shows it; nil for nothing.
	Auth *PrometheusAuth `json:"auth,omitempty"`
}

// Validate refuses a plan that cannot be carried out, before anything starts.
func (p BenchPlan) Validate() error {
	refuseWith := func(hint, format string, args ...any) error {
		return failure.New(failure.Usage, hint, "read bench plan: "+format, args...)
	}
	refuse := func(format string, args ...any) error { return refuseWith("", format, args...) }
	if err := CheckURL(p.Target.URL); err != nil {
		return refuseWith("write the API's base as http://HOST:PORT or https://HOST", "target.url: %w", err)
	}
	if p.Target.API != APICompletions && p.Target.API != APIChat {
		return refuse("target.api %q is neither %s nor %s", p.Target.API, APICompletions, APIChat)
	}
	if err := p.Target.validate(); err != nil {
		return err
	}
	switch {
	case !(p.DurationSeconds > 0):
		return refuseWith("a window of 60s or more gives percentiles worth having", "duration_seconds must be above 0")
	case !(p.RequestTimeoutSeconds > 0):
		return refuseWith("give the longest time that an answer may take, such as 6m", "request_timeout_seconds must be above 0")
	case p.WarmupSeconds < 0, p.IdleTimeoutSeconds < 0, p.Temperature < 0:
		return refuse("a time or the temperature is below 0")
	case p.MaxErrorRate < 0 || p.MaxErrorRate > 1:
		return refuse("max_error_rate %v is not between 0 and 1", p.MaxErrorRate)
	case p.MinGoodput < 0 || p.MinGoodput > 1:
		return refuse("min_goodput %v is not between 0 and 1", p.MinGoodput)
	case p.MinGoodput > 0 && len(p.SLOs) == 0:
		return refuseWith("give an objective, such as --slo p99_e2e=30s", "min_goodput needs an objective that makes a request good")
	case len(p.Cases) == 0 && p.FindKnee == nil:
		return refuseWith("give a concurrency or a rate, and lengths of prompts and outputs", "it has no case")
	}
	if p.FindKnee != nil {
		if err := p.FindKnee.validate(p); err != nil {
			return err
		}
	}
	if p.Stop != nil {
		if err := p.Stop.validate(); err != nil {
			return err
		}
		if p.Stop.Objective > 0 && len(p.SLOs) == 0 {
			return refuseWith("give an objective, such as --slo p99_e2e=30s", "stop.objective needs an objective")
		}
	}
	names := make(map[string]bool, len(p.Cases))
	for _, c := range p.Cases {
		switch {
		case c.Name == "":
			return refuse("a case has no name")
		case names[c.Name]:
			return refuse("case %q is there twice", c.Name)
		}
		if err := c.validate(p); err != nil {
			return err
		}
		names[c.Name] = true
	}
	for _, slo := range p.SLOs {
		if !slices.Contains([]string{MetricTTFT, MetricTPOT, MetricE2E, MetricMaxStall}, slo.Metric) {
			return refuse("objective %q is not known", slo.Metric)
		}
		if slo.MaxSeconds <= 0 || slo.Percentile <= 0 || slo.Percentile > 100 {
			return refuse("objective %s needs max_seconds above 0 and a percentile of 0 to 100", slo.Metric)
		}
	}
	if p.Prometheus == nil {
		return nil
	}
	if err := CheckURL(p.Prometheus.URL); err != nil {
		return refuse("prometheus.url: %w", err)
	}
	if p.Prometheus.ScrapeLagSeconds < 0 || p.Prometheus.StepSeconds < 0 {
		return refuse("prometheus: a time is below 0")
	}
	if p.Prometheus.Auth != nil {
		if err := p.Prometheus.Auth.validate(); err != nil {
			return err
		}
	}
	for _, signal := range p.Prometheus.Required {
		if !slices.Contains(BenchSignals(), signal) {
			return refuse("prometheus: required signal %q is not known", signal)
		}
	}
	return nil
}

// TotalSeconds is how long the plan takes at most while no request is stuck:
// warm-up, duration and the wait for the last scrape, for each case.
func (p BenchPlan) TotalSeconds() float64 {
	sum := 0.0
	if p.FindKnee != nil {
		sum = p.FindKnee.BudgetSeconds
	}
	for _, c := range p.Cases {
		sum += p.Warmup(c) + p.Seconds(c)
		if p.Prometheus != nil {
			sum += p.Prometheus.ScrapeLagSeconds
		}
	}
	return sum
}

// CheckURL accepts the URL of a server. Credentials have no place in it: plans
// are stored, shown and logged.
func CheckURL(raw string) error {
	parsed, err := url.Parse(raw)
	if err != nil {
		// The error of the parser repeats the URL.
		return errors.New("it is not a URL")
	}
	if parsed.User != nil {
		return errors.New("it holds credentials: give them in a Secret")
	}
	// A base has neither, and what stands there is often a token.
	if parsed.RawQuery != "" || parsed.ForceQuery || parsed.Fragment != "" {
		return errors.New("it has a query or a fragment: give the base alone, and credentials in a Secret")
	}
	if (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" {
		return fmt.Errorf("%q is not an http or https URL", raw)
	}
	return nil
}
