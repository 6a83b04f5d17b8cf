package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// running is a process in the background.
type running struct {
	url    string
	stop   context.CancelFunc
	exit   chan int
	stderr *buffer
}

// buffer is written by the process and read by the test.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func launch(t *testing.T, env map[string]string, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	r := &running{stop: cancel, exit: make(chan int, 1), stderr: &buffer{}}
	p := process{stdout: in, stderr: r.stderr, getenv: func(k string) string { return env[k] }, now: time.Now}
	go func() {
		r.exit <- p.run(ctx, append(args, "--port", "0", "--print-url"))
		_ = in.Close()
	}()
	if _, err := fmt.Fscan(out, &r.url); err != nil {
		t.Fatalf("no URL: %v\n%s", err, r.stderr)
	}
	t.Cleanup(cancel)
	return r
}

func get(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// modelDir is a directory with a small model.
func modelDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	header := `{"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}`
	shard := string(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))) + header + strings.Repeat("x", 16)
	for name, content := range map[string]string{
		"config.json":       `{"max_position_embeddings":4096}`,
		"model.safetensors": shard,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The arguments of a deployment that knows nothing of this engine, with the environment that only this one reads.
func TestServesTheArgumentsOfAVLLMContainer(t *testing.T) {
	dir := modelDir(t)
	r := launch(t, map[string]string{"ENGINE_SPEED": "1000", "ENGINE_ADMIN": "true"},
		dir, "--host", "127.0.0.1", "--gpu-memory-utilization", "0.90", "--max-num-seqs", "40", "--max-num-batched-tokens", "2048",
		"--reasoning-parser", "deepseek_r1", "--enable-auto-tool-choice", "--tool-call-parser", "hermes",
		"--load-format", "runai_streamer", "--dtype", "auto", "--served-model-name", "deepseek")
	if got := get(t, r.url+"/v1/models"); !strings.Contains(got, `"id":"deepseek"`) || !strings.Contains(got, `"max_model_len":4096`) {
		t.Errorf("models: %s", got)
	}
	if got := get(t, r.url+"/metrics"); !strings.Contains(got, `num_gpu_blocks="3513"`) {
		t.Error("the KV cache is not of the size that 0.90 of the memory leaves")
	}
	if got := get(t, r.url+"/admin/capacity"); !strings.Contains(got, `"throughput_rps":1631.8`) {
		t.Errorf("capacity: %s", got)
	}
	r.stop()
	if code := <-r.exit; code != 0 {
		t.Errorf("exit code %d after a signal", code)
	}
	for _, want := range []string{
		"Starting to load model " + dir + "...",
		"Loading safetensors checkpoint shards: 100% Completed | 1/1",
		"Loading weights took ",
		"GPU KV cache size: 56,208 tokens",
		"init engine (profile, create kv cache, warmup model) took ",
		"Starting vLLM server on http://127.0.0.1:",
		"Application startup complete.",
		"Application shutdown complete.",
	} {
		if !strings.Contains(r.stderr.String(), want) {
			t.Errorf("no %q in the log:\n%s", want, r.stderr)
		}
	}
}

func TestDoesNotStart(t *testing.T) {
	broken := modelDir(t)
	if err := os.Truncate(filepath.Join(broken, "model.safetensors"), 70); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args   []string
		env    map[string]string
		code   int
		stderr string
	}{
		"broken weights":      {args: []string{broken}, code: 1, stderr: "load weights: model.safetensors: file has 70 bytes, its header says 79"},
		"no such model":       {args: []string{"some/repository"}, code: 1, stderr: "open model some/repository: not a directory and not s3://bucket/prefix"},
		"kv cache too small":  {args: []string{"--num-gpu-blocks-override", "900"}, code: 1, stderr: "needs 938 kv blocks, but there are 900"},
		"no memory for kv":    {args: []string{"--gpu-memory-utilization", "0.4"}, code: 1, stderr: "number of kv blocks must be at least 1"},
		"port in use":         {args: []string{"--port", "70000"}, code: 1, stderr: "listen: "},
		"unknown flag":        {args: []string{"--max-nun-seqs", "3"}, code: 2, stderr: "unknown flag: --max-nun-seqs"},
		"two models":          {args: []string{"a", "b"}, code: 2, stderr: `one model, not also "b"`},
		"broken environment":  {env: map[string]string{"ENGINE_SPEED": "fast"}, code: 2, stderr: "read environment ENGINE_SPEED"},
		"help is not a fault": {args: []string{"--help"}, code: 0},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			p := process{stdout: io.Discard, stderr: &stderr, getenv: func(k string) string { return test.env[k] }, now: time.Now}
			if code := p.run(t.Context(), test.args); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if !strings.Contains(stderr.String(), test.stderr) {
				t.Errorf("stderr %q, want %q", stderr.String(), test.stderr)
			}
		})
	}
}

// As with vLLM, the port is closed until the model is loaded.
func TestRefusesConnectionsWhileLoading(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	_ = free.Close()
	ctx, cancel := context.WithCancel(t.Context())
	exit := make(chan int, 1)
	stderr := &buffer{}
	first := make(chan struct{})
	p := process{
		stdout: io.Discard, stderr: io.MultiWriter(stderr, &announcer{first: first}),
		getenv: func(string) string { return "" }, now: time.Now,
	}
	go func() { exit <- p.run(ctx, []string{"--port", port, "--load-seconds", "3600"}) }()
	<-first
	if conn, err := net.Dial("tcp", address); err == nil {
		_ = conn.Close()
		t.Error("connected before the model was loaded")
	}
	cancel()
	if code := <-exit; code != 1 {
		t.Errorf("exit code %d when stopped while loading", code)
	}
	if !strings.Contains(stderr.String(), "stopped by a signal") {
		t.Errorf("log: %s", stderr)
	}
}

// announcer closes first at the first write.
type announcer struct {
	first chan struct{}
	once  sync.Once
}

func (a *announcer) Write(p []byte) (int, error) {
	a.once.Do(func() { close(a.first) })
	return len(p), nil
}

// A request that is being answered when the signal comes is answered to its end.
func TestDrain(t *testing.T) {
	r := launch(t, nil, "--speed", "20", "--admin")
	response, err := http.Post(r.url+"/v1/completions", "application/json",
		strings.NewReader(`{"prompt":"x","max_tokens":100,"ignore_eos":true,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	r.stop()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(body), "data: {"); n != 100 || !strings.HasSuffix(string(body), "data: [DONE]\n\n") {
		t.Errorf("%d chunks of 100 after the signal", n)
	}
	if code := <-r.exit; code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestDrainHasALimit(t *testing.T) {
	r := launch(t, nil, "--drain-time", "10ms")
	response, err := http.Post(r.url+"/v1/completions", "application/json",
		strings.NewReader(`{"prompt":"x","max_tokens":10000,"ignore_eos":true,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	r.stop()
	if _, err := io.ReadAll(response.Body); err == nil {
		t.Error("the answer looks complete")
	}
	if code := <-r.exit; code != 0 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(r.stderr.String(), "were broken off") {
		t.Errorf("log: %s", r.stderr)
	}
}
