package bench

import (
	"time"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// maxFile bounds a bench.yaml.
const maxFile = 1 << 20

// file is a bench.yaml: what the flags say, and several groups of cases. A flag
// that is given wins over the file.
type file struct {
	Name         string            `json:"name"`
	Profile      *profile          `json:"profile"`
	URL          string            `json:"url"`
	API          string            `json:"api"`
	Model        string            `json:"model"`
	HTTP         string            `json:"http"`
	Headers      map[string]string `json:"headers"`
	Warmup       *span             `json:"warmup"`
	Duration     *span             `json:"duration"`
	RequestLimit *span             `json:"request_limit"`
	IdleLimit    *span             `json:"idle_limit"`
	SLOs         []string          `json:"slos"`
	Seed         *uint64           `json:"seed"`
	Stream       *bool             `json:"stream"`
	EachUsage    *bool             `json:"continuous_usage"`
	Temperature  *float64          `json:"temperature"`
	MaxErrorRate *float64          `json:"max_error_rate"`
	Cases        []load            `json:"cases"`
}

// loadFlags are the flags that make up the cases; a file has its own.
var loadFlags = []string{
	"concurrency", "prompt-tokens", "output-tokens", "requests", "rate", "arrival", "burstiness", "stages", "trace", "trace-speed",
	"max-in-flight", "shared-prefix-tokens", "shared-prefix-groups", "turns", "new-tokens", "think",
}

const fileHint = "`kubectl inference bench --help` shows an example of the file"

// readFile takes the options that the flags leave open from the file.
func (o *options) readFile(flags *pflag.FlagSet) error {
	for _, name := range loadFlags {
		if flags.Changed(name) {
			return failure.New(failure.Usage, "write it into the file, or leave the file out", "read --%s: the cases come from the file %s", name, o.file)
		}
	}
	data, err := readAll(o.file, o.streams.In, maxFile)
	if err != nil {
		return failure.New(failure.Usage, fileHint, "read bench file: %w", err)
	}
	return o.take(flags, data, "bench file "+o.file)
}

// take takes the options that the flags leave open from a file's content.
func (o *options) take(flags *pflag.FlagSet, data []byte, what string) error {
	var f file
	if err := yaml.UnmarshalStrict(data, &f); err != nil {
		return failure.New(failure.Usage, fileHint, "read %s: %s", what, failure.Clean(err.Error()))
	}
	if len(f.Cases) == 0 {
		return failure.New(failure.Usage, fileHint, "read %s: it has no cases", what)
	}
	o.loads, o.profile = f.Cases, f.Profile
	take(flags, "name", &o.name, f.Name)
	take(flags, "url", &o.url, f.URL)
	take(flags, "api", &o.api, f.API)
	take(flags, "model", &o.model, f.Model)
	take(flags, "http", &o.http, f.HTTP)
	for _, one := range []struct {
		flag string
		to   *time.Duration
		from *span
	}{{"warmup", &o.warmup, f.Warmup}, {"duration", &o.duration, f.Duration}, {"request-limit", &o.requestTime, f.RequestLimit}, {"idle-limit", &o.idleTime, f.IdleLimit}} {
		if one.from != nil && !flags.Changed(one.flag) {
			*one.to = time.Duration(*one.from)
		}
	}
	if len(f.SLOs) > 0 && !flags.Changed("slo") {
		o.slos = f.SLOs
	}
	takePointer(flags, "seed", &o.seed, f.Seed)
	takePointer(flags, "stream", &o.stream, f.Stream)
	takePointer(flags, "continuous-usage", &o.eachUsage, f.EachUsage)
	takePointer(flags, "temperature", &o.temperature, f.Temperature)
	takePointer(flags, "max-error-rate", &o.errorRate, f.MaxErrorRate)
	o.fileHeaders = f.Headers
	return nil
}

func take(flags *pflag.FlagSet, flag string, to *string, from string) {
	if from != "" && !flags.Changed(flag) {
		*to = from
	}
}

func takePointer[T any](flags *pflag.FlagSet, flag string, to, from *T) {
	if from != nil && !flags.Changed(flag) {
		*to = *from
	}
}
