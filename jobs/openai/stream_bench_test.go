//go:build unix

package openai_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/openai"
)

// chunksPerStream is the length of an answer, chunkPause the time between its
// chunks: 50 tokens a second, as a server under load gives.
const (
	chunksPerStream = 128
	chunkPause      = 20 * ms
	streams         = 200
)

const serveVariable = "OPENAI_TEST_SERVE"

// TestMain lets the benchmark start this binary as its server, so that the CPU
// time of the process is that of the client alone.
func TestMain(m *testing.M) {
	if os.Getenv(serveVariable) == "" {
		os.Exit(m.Run())
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		os.Exit(1)
	}
	fmt.Println(listener.Addr())
	go func() { // the server ends with the benchmark
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	_ = http.Serve(listener, http.HandlerFunc(serveChunks)) //nolint:gosec // a test
}

func serveChunks(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w).Flush
	for i := range chunksPerStream {
		fmt.Fprintf(w, `data: {"id":"cmpl-6ffb4d3b8a7e4b6cbb0a0c8e3a1d7f5e","object":"text_completion","created":1764500000,"model":"engine","choices":[{"index":0,"text":" word%d","logprobs":null,"finish_reason":null,"stop_reason":null}],"usage":null}`+"\n\n", i)
		if flush() != nil {
			return
		}
		time.Sleep(chunkPause)
	}
	fmt.Fprint(w, finish+usage2+done)
}

func startServer(b *testing.B) string {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	server := exec.Command(self)
	server.Env = append(os.Environ(), serveVariable+"=1")
	stdin, err := server.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := server.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = stdin.Close()
		_ = server.Wait()
	})
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return "http://" + strings.TrimSpace(address)
}

// BenchmarkStream is the CPU time of a streamed chunk, all in: connection,
// reads, parsing and stamps, over 200 paced streams. The bare reader is the
// floor: net/http reading the same stream and looking at nothing.
func BenchmarkStream(b *testing.B) {
	body := openai.Request{API: record.APICompletions, Model: "m", Tokens: make([]uint32, 1024), OutputTokens: chunksPerStream, Stream: true}.Body()
	client := openai.NewHTTP(false)
	b.Run("client", func(b *testing.B) {
		c := &openai.Client{HTTP: client, URL: startServer(b), Timeout: time.Minute, Idle: time.Minute, Now: time.Now}
		benchmarkStreams(b, func() error {
			if reply := c.Do(b.Context(), record.APICompletions, body, nil); reply.Class != "" || reply.Chunks != chunksPerStream {
				return fmt.Errorf("%s %s: %d chunks", reply.Class, reply.Message, reply.Chunks)
			}
			return nil
		})
	})
	b.Run("bare", func(b *testing.B) {
		url := startServer(b)
		benchmarkStreams(b, func() error {
			response, err := client.Post(url, "application/json", strings.NewReader(string(body)))
			if err != nil {
				return err
			}
			defer response.Body.Close()
			buffer := make([]byte, 4096)
			for err == nil {
				_, err = response.Body.Read(buffer)
			}
			return nil
		})
	})
}

func benchmarkStreams(b *testing.B, one func() error) {
	var wait sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(b.N))
	before := cpuTime(b)
	for range streams {
		wait.Go(func() {
			for left.Add(-1) >= 0 {
				if err := one(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	used := cpuTime(b) - before
	b.ReportMetric(float64(used.Nanoseconds())/1000/float64(b.N)/chunksPerStream, "cpu-us/chunk")
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkParse is the part of a chunk's time that is ours.
func BenchmarkParse(b *testing.B) {
	var stream strings.Builder
	for i := range chunksPerStream {
		stream.WriteString(`data: {"id":"cmpl-6ffb4d3b8a7e4b6cbb0a0c8e3a1d7f5e","object":"text_completion","created":1764500000,"model":"engine","choices":[{"index":0,"text":" word` +
			strconv.Itoa(i) + `","logprobs":null,"finish_reason":null,"stop_reason":null}],"usage":null}` + "\n\n")
	}
	c := &openai.Client{HTTP: &http.Client{Transport: canned(stream.String() + finish + done)}, URL: "http://x", Timeout: time.Minute, Now: time.Now}
	b.ReportAllocs()
	for b.Loop() {
		if reply := c.Do(b.Context(), record.APICompletions, nil, nil); reply.Chunks != chunksPerStream {
			b.Fatal(reply.Class, reply.Message)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/chunksPerStream, "ns/chunk")
}

// canned answers every request with the same stream.
type canned string

func (c canned) RoundTrip(request *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: 200, Request: request, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(string(c))),
	}, nil
}
