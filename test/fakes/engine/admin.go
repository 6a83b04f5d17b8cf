package engine

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine/model"
)

// SetPins replaces gauge values; nil restores the true ones.
func (e *Engine) SetPins(p *Pins) { e.metrics.pins.Store(p) }

// State is what the engine is doing, after its latest step.
type State struct {
	Running int          `json:"running"`
	Waiting int          `json:"waiting"`
	KVUse   float64      `json:"kv_cache_usage"`
	Totals  model.Totals `json:"totals"`
}

// State returns the state between two steps, or the zero value after Close.
func (e *Engine) State() State {
	result := make(chan State, 1)
	e.command(func(s *model.Scheduler) {
		result <- State{Running: s.Running(), Waiting: s.Waiting(), KVUse: s.KVUse(), Totals: s.Totals()}
	})
	select {
	case s := <-result:
		return s
	case <-e.ended:
		return State{}
	}
}

// ForgetPrefixes empties the prefix cache before the next step.
func (e *Engine) ForgetPrefixes() { e.command((*model.Scheduler).ForgetPrefixes) }

// adminRoutes opens what tests need: pins, faults, the state, and the truth about the capacity.
func (e *Engine) adminRoutes(mux *http.ServeMux) {
	mux.HandleFunc("PUT /admin/pins", func(w http.ResponseWriter, r *http.Request) {
		var p Pins
		if adminBody(w, r, &p) {
			e.SetPins(&p)
			w.WriteHeader(http.StatusNoContent)
		}
	})
	mux.HandleFunc("DELETE /admin/pins", func(w http.ResponseWriter, _ *http.Request) {
		e.SetPins(nil)
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("PUT /admin/faults", func(w http.ResponseWriter, r *http.Request) {
		var list []Fault
		if adminBody(w, r, &list) {
			e.SetFaults(list...)
			w.WriteHeader(http.StatusNoContent)
		}
	})
	mux.HandleFunc("DELETE /admin/faults", func(w http.ResponseWriter, _ *http.Request) {
		e.SetFaults()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /admin/state", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, e.State())
	})
	mux.HandleFunc("GET /admin/capacity", e.capacity)
	// The name that vLLM itself has for this, in its development mode.
	mux.HandleFunc("POST /reset_prefix_cache", func(w http.ResponseWriter, _ *http.Request) {
		e.ForgetPrefixes()
		w.WriteHeader(http.StatusOK)
	})
}

func adminBody(w http.ResponseWriter, r *http.Request, into any) bool {
	if err := strict(http.MaxBytesReader(w, r.Body, 1<<20), into); err != nil {
		writeError(w, badRequest("", "parse body: "+err.Error()))
		return false
	}
	return true
}

// strict decodes JSON and refuses unknown fields: a misspelt fault must not pass for none.
func strict(r io.Reader, into any) error {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// Capacity is the truth that a benchmark has to find, as a client sees it: real time, with the speed taken in.
type Capacity struct {
	Concurrency     int     `json:"concurrency"`
	InputTokens     int     `json:"input_tokens"`
	OutputTokens    int     `json:"output_tokens"`
	Throughput      float64 `json:"throughput_rps"`
	LatencySeconds  float64 `json:"latency_seconds"`
	Batch           float64 `json:"batch"`
	KVUse           float64 `json:"kv_cache_usage"`
	SaturationBatch float64 `json:"saturation_batch"`
	MaxThroughput   float64 `json:"max_throughput_rps"`
}

// Capacity returns the true steady state of a closed loop of n clients.
func (e *Engine) Capacity(n int, s model.Shape) Capacity {
	c, speed := e.config.Model, e.config.Speed
	p := c.ClosedLoop(n, s)
	return Capacity{
		Concurrency:     n,
		InputTokens:     s.Input,
		OutputTokens:    s.Output,
		Throughput:      p.Throughput * speed,
		LatencySeconds:  p.Latency.Seconds() / speed,
		Batch:           p.Batch,
		KVUse:           p.KVUse,
		SaturationBatch: c.SaturationBatch(s),
		MaxThroughput:   c.MaxThroughput(s) * speed,
	}
}

func (e *Engine) capacity(w http.ResponseWriter, r *http.Request) {
	value := func(name string, fallback int) int {
		n, err := strconv.Atoi(r.URL.Query().Get(name))
		if err != nil || n < 1 {
			return fallback
		}
		return n
	}
	shape := model.Shape{Input: value("input", 1024), Output: value("output", 128)}
	writeJSON(w, http.StatusOK, e.Capacity(value("concurrency", e.config.Model.MaxNumSeqs), shape))
}

// Running is the number of requests in the batch, as of the latest step.
func (e *Engine) Running() int { return int(e.metrics.live.running.Load()) }

// Waiting is the number of requests in the queue, as of the latest step.
func (e *Engine) Waiting() int { return int(e.metrics.live.waiting.Load()) }
