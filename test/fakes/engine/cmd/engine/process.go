package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/pflag"

	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine/weights"
)

// process is one life of the server: load, listen, serve, drain.
type process struct {
	stdout, stderr io.Writer
	getenv         func(string) string
	now            func() time.Time
}

// run returns the exit code: 0 after a drain, 1 if the engine cannot start or serve, 2 for wrong arguments.
func (p process) run(ctx context.Context, args []string) int {
	o, err := parse(args, p.getenv, p.stderr)
	if errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(p.stderr, "engine: error: %v\n", err)
		return 2
	}
	p.log("INFO", "api_server.py", "vLLM API server version %s (engine fake)", engine.Version)
	if err := p.serve(ctx, o); err != nil {
		p.log("ERROR", "core.py", "EngineCore failed to start.")
		p.log("ERROR", "core.py", "%v", err)
		return 1
	}
	return 0
}

// log writes a line in the form of vLLM's log, so that tools that read it find what they look for.
func (p process) log(level, file, format string, args ...any) {
	fmt.Fprintf(p.stderr, "%s %s [%s] %s\n", level, p.now().Format("01-02 15:04:05"), file, fmt.Sprintf(format, args...))
}

// serve loads the model, and only then opens the port, as vLLM does: until then connections are refused.
func (p process) serve(ctx context.Context, o options) error {
	began := p.now()
	loaded, err := p.load(ctx, o)
	if err != nil {
		return err
	}
	config := o.engineConfig(loaded.MaxLength)
	if err := config.Model.Validate(); err != nil {
		return err
	}
	if err := p.initialise(ctx, o, config, began); err != nil {
		return err
	}
	e, err := engine.New(config)
	if err != nil {
		return err
	}
	defer e.Close()
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", net.JoinHostPort(o.host, strconv.Itoa(o.port)))
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return p.answer(ctx, o, e, listener)
}

// load reads the weights.
func (p process) load(ctx context.Context, o options) (weights.Model, error) {
	if o.dummy() {
		return weights.Model{}, nil
	}
	p.log("INFO", "gpu_model_runner.py", "Starting to load model %s...", o.model)
	began := p.now()
	src, err := weights.Open(ctx, o.model)
	if err != nil {
		return weights.Model{}, err
	}
	m, err := weights.Load(ctx, src, func(done, total int) {
		p.log("INFO", "weight_utils.py", "Loading safetensors checkpoint shards: %3d%% Completed | %d/%d", 100*done/total, done, total)
	})
	if err != nil {
		return weights.Model{}, err
	}
	took := p.now().Sub(began).Seconds()
	p.log("INFO", "default_loader.py", "Loading weights took %.2f seconds", took)
	p.log("INFO", "gpu_model_runner.py", "Model loading took %.4f GiB memory and %.6f seconds", float64(m.Bytes)/(1<<30), took)
	return m, nil
}

// initialise spends the configured load time and reports the KV cache.
func (p process) initialise(ctx context.Context, o options, c engine.Config, began time.Time) error {
	if o.loadTime > 0 {
		timer := time.NewTimer(o.loadTime)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return fmt.Errorf("initialise engine: stopped by a signal: %w", context.Cause(ctx))
		}
	}
	tokens := c.Model.NumBlocks * c.Model.BlockSize
	p.log("INFO", "kv_cache_utils.py", "GPU KV cache size: %s tokens", humanize.Comma(int64(tokens)))
	p.log("INFO", "kv_cache_utils.py", "Maximum concurrency for %s tokens per request: %.2fx",
		humanize.Comma(int64(c.Model.MaxModelLen)), float64(tokens)/float64(c.Model.MaxModelLen))
	p.log("INFO", "core.py", "init engine (profile, create kv cache, warmup model) took %.2f seconds", p.now().Sub(began).Seconds())
	return nil
}

// answer serves until the context ends, then lets running requests finish.
func (p process) answer(ctx context.Context, o options, e *engine.Engine, l net.Listener) error {
	server := &http.Server{Handler: e, ReadHeaderTimeout: 30 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	p.log("INFO", "api_server.py", "Starting vLLM server on http://%s", l.Addr())
	p.log("INFO", "launcher.py", "Application startup complete.")
	if o.printURL {
		fmt.Fprintf(p.stdout, "http://%s\n", l.Addr())
	}
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	p.log("INFO", "launcher.py", "Shutting down: waiting for running requests.")
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.drain)
	defer cancel()
	if err := server.Shutdown(drain); err != nil {
		p.log("WARNING", "launcher.py", "Requests still running after %v were broken off.", o.drain)
		return errors.Join(e.Close(), server.Close())
	}
	p.log("INFO", "launcher.py", "Application shutdown complete.")
	return nil
}
