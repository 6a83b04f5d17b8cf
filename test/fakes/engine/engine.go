package engine

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine/model"
)

// Config is what one engine is made of. The zero value of a field means its default.
type Config struct {
	// Model is the queueing model; default [model.Default].
	Model model.Config
	// Names are the model ids under which it serves; the first is the one that answers and metrics carry. Default
	// "engine".
	Names []string
	// Root is where the model was loaded from, for /v1/models. Default the first name.
	Root string
	// Speed divides all engine time; default 1.
	Speed float64
	// APIKeys, if any, are demanded as bearer tokens below /v1.
	APIKeys []string
	// Admin opens the /admin endpoints and the fault header.
	Admin bool
	// NaturalLength is the mean length in tokens of an answer to a request that does not ignore the end of sequence.
	// The actual length follows from the prompt, between half and one and a half of it. Default 256; negative means
	// that every answer is as long as its limit.
	NaturalLength int
	// ReasoningTokens is the number of tokens at the start of a chat answer that are sent as reasoning. Default none.
	ReasoningTokens int
	// HideCachedTokens leaves prompt_tokens_details out of usage, as vLLM does unless asked.
	HideCachedTokens bool
	// GPUMemoryUtilization is only reported, in vllm:cache_config_info. Default 0.9.
	GPUMemoryUtilization float64
	// Registry receives the metrics and is what /metrics shows. Default a new one.
	Registry *prometheus.Registry
	// Clock is the source of time. Default the wall clock.
	Clock Clock
}

// Clock is the time that an engine lives in.
type Clock interface {
	Now() time.Time
	// Timer fires once after d, unless stopped.
	Timer(d time.Duration) (fired <-chan time.Time, stop func() bool)
}

type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

func (wallClock) Timer(d time.Duration) (<-chan time.Time, func() bool) {
	t := time.NewTimer(d)
	return t.C, t.Stop
}

func (c Config) withDefaults() Config {
	if c.Model == (model.Config{}) {
		c.Model = model.Default()
	}
	if len(c.Names) == 0 {
		c.Names = []string{"engine"}
	}
	if c.Root == "" {
		c.Root = c.Names[0]
	}
	if c.Speed == 0 {
		c.Speed = 1
	}
	if c.NaturalLength == 0 {
		c.NaturalLength = 256
	}
	if c.GPUMemoryUtilization == 0 {
		c.GPUMemoryUtilization = 0.9
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	if c.Clock == nil {
		c.Clock = wallClock{}
	}
	return c
}

// Engine is a running engine. It is an [http.Handler]; Close stops it.
type Engine struct {
	config  Config
	created int64
	handler http.Handler
	metrics *metrics
	faults  faults
	serial  atomic.Uint64

	cancel context.CancelFunc
	done   <-chan struct{} // closed when Close begins
	ended  chan struct{}   // closed when the scheduler has ended

	mu        sync.Mutex
	incoming  []*job
	leaving   []*job
	commands  []func(*model.Scheduler)
	wake      chan struct{}
	scheduler *model.Scheduler // of the scheduler goroutine alone
}

// New starts an engine. It serves at once; loading a model before is the caller's part.
func New(c Config) (*Engine, error) {
	c = c.withDefaults()
	if c.Speed < 0 {
		return nil, fmt.Errorf("start engine: speed must be positive, not %v", c.Speed)
	}
	s, err := model.New(c.Model)
	if err != nil {
		return nil, fmt.Errorf("start engine: %w", err)
	}
	m, err := newMetrics(c)
	if err != nil {
		return nil, fmt.Errorf("start engine: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &Engine{
		config:    c,
		created:   c.Clock.Now().Unix(),
		metrics:   m,
		cancel:    cancel,
		done:      ctx.Done(),
		ended:     make(chan struct{}),
		wake:      make(chan struct{}, 1),
		scheduler: s,
	}
	e.handler = e.routes()
	go e.run()
	return e, nil
}

// Close stops the engine and breaks off what it is answering. It returns when the scheduler has ended.
func (e *Engine) Close() error {
	e.cancel()
	<-e.ended
	return nil
}

// Config returns the configuration with its defaults filled in.
func (e *Engine) Config() Config { return e.config }

// ServeHTTP answers a request.
func (e *Engine) ServeHTTP(w http.ResponseWriter, r *http.Request) { e.handler.ServeHTTP(w, r) }
