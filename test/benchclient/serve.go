//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/stats"
)

// The pace of the server: what a busy replica gives.
const (
	chunks     = 128
	firstAfter = 100 * time.Millisecond
	pace       = 20 * time.Millisecond
)

const (
	event = `data: {"id":"cmpl-6ffb4d3b8a7e4b6cbb0a0c8e3a1d7f5e","object":"text_completion","created":1764500000,"model":"m","choices":[{"index":0,"text":" word","logprobs":null,"finish_reason":null,"stop_reason":null}],"usage":null}` + "\n\n"
	last  = `data: {"choices":[{"index":0,"text":"","finish_reason":"length"}]}` + "\n\ndata: [DONE]\n\n"
)

// seen is what a client, or the server itself, says of a run, in milliseconds.
type seen struct {
	TTFT50  float64 `json:"ttft_p50"`
	TTFT99  float64 `json:"ttft_p99"`
	ITL50   float64 `json:"itl_p50"`
	ITL99   float64 `json:"itl_p99"`
	Chunks  int     `json:"chunks"`
	Streams int     `json:"streams"`
}

// tally gathers the times of streams.
type tally struct {
	mu        sync.Mutex
	ttft, itl stats.Sample
	streams   int
}

func (t *tally) add(ttft time.Duration, gaps []time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streams++
	t.ttft.Add(1000 * ttft.Seconds())
	for _, gap := range gaps {
		t.itl.Add(1000 * gap.Seconds())
	}
}

func (t *tally) seen() seen {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.streams == 0 || t.itl.Count() == 0 {
		return seen{}
	}
	return seen{t.ttft.Quantile(0.5), t.ttft.Quantile(0.99), t.itl.Quantile(0.5), t.itl.Quantile(0.99), t.itl.Count() + t.ttft.Count(), t.streams}
}

// serve answers paced streams, whole bodies below /burst, and with what it did
// below /truth. Its address is its first line.
func serve() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	var truth tally
	mux := http.NewServeMux()
	mux.HandleFunc("/truth", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(truth.seen()) })
	mux.HandleFunc("/burst", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for range chunks {
			_, _ = io.WriteString(w, event)
		}
	})
	mux.HandleFunc("/v1/completions", func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		flush := http.NewResponseController(w).Flush
		var first, before time.Time
		gaps := make([]time.Duration, 0, chunks)
		for i := range chunks {
			time.Sleep(time.Until(start.Add(firstAfter + time.Duration(i)*pace)))
			if _, err := io.WriteString(w, event); err != nil || flush() != nil {
				return
			}
			now := time.Now()
			if i == 0 {
				first = now
			} else {
				gaps = append(gaps, now.Sub(before))
			}
			before = now
		}
		_, _ = io.WriteString(w, last)
		truth.add(first.Sub(start), gaps)
	})
	return http.Serve(listener, mux) //nolint:gosec // a benchmark on loopback
}
