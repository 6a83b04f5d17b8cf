package record

import (
	"math"
	"strconv"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// BenchProfile says what a plan is for. It decides nothing; reports and their
// CSV carry it, so that runs can be told apart later.
type BenchProfile struct {
	Name       string `json:"name"`
	Hypothesis string `json:"hypothesis,omitempty"`
	// Engine is how the engine was started, as whoever measures states it.
	Engine *EngineSettings `json:"engine,omitempty"`
}

// EngineSettings are the settings of an engine that decide over its capacity, by
// the names of vLLM's flags; nil where unknown.
type EngineSettings struct {
	// GPUMemoryUtilization is the share of the GPU's memory that it may use, 0 to 1.
	GPUMemoryUtilization *float64 `json:"gpu_memory_utilization,omitempty"`
	// MaxModelLen is the longest prompt and output together, in tokens.
	MaxModelLen *int `json:"max_model_len,omitempty"`
	// MaxNumSeqs is how many requests run at once, MaxNumBatchedTokens how many
	// tokens one step of the scheduler takes.
	MaxNumSeqs          *int `json:"max_num_seqs,omitempty"`
	MaxNumBatchedTokens *int `json:"max_num_batched_tokens,omitempty"`
}

const engineHint = "write NAME=VALUE; the names are gpu_memory_utilization, max_model_len, max_num_seqs, max_num_batched_tokens"

// Set takes one setting, written as in "max_num_seqs=40".
func (s *EngineSettings) Set(text string) error {
	name, value, _ := strings.Cut(text, "=")
	number, err := strconv.ParseFloat(value, 64)
	if err != nil || !(number > 0) || math.IsInf(number, 0) {
		return failure.New(failure.Usage, engineHint, "read engine setting %q: its value is not a number above 0", text)
	}
	whole := map[string]**int{"max_model_len": &s.MaxModelLen, "max_num_seqs": &s.MaxNumSeqs, "max_num_batched_tokens": &s.MaxNumBatchedTokens}
	switch field, isWhole := whole[name]; {
	case isWhole && number == math.Trunc(number) && number < math.MaxInt32:
		n := int(number)
		*field = &n
	case isWhole:
		return failure.New(failure.Usage, engineHint, "read engine setting %q: its value is not a whole number", text)
	case name == "gpu_memory_utilization" && number <= 1:
		s.GPUMemoryUtilization = &number
	case name == "gpu_memory_utilization":
		return failure.New(failure.Usage, "90 % is 0.9", "read engine setting %q: it is a share, at most 1", text)
	default:
		return failure.New(failure.Usage, engineHint, "read engine setting %q: there is no setting of that name", text)
	}
	return nil
}
