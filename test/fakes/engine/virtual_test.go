package engine_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine/model"
)

// pipeListener accepts in-memory connections, which testing/synctest can see through.
type pipeListener struct {
	connections chan net.Conn
	closed      chan struct{}
	once        sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.connections:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

func (l *pipeListener) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	l.connections <- server
	return client, nil
}

// virtual runs f against a real HTTP server within a bubble of virtual time.
func virtual(t *testing.T, c engine.Config, f func(*testing.T, *engine.Engine, *http.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e, err := engine.New(c)
		if err != nil {
			t.Fatal(err)
		}
		l := &pipeListener{connections: make(chan net.Conn), closed: make(chan struct{})}
		server := &http.Server{Handler: e}
		var wg sync.WaitGroup
		wg.Go(func() { _ = server.Serve(l) })
		transport := &http.Transport{DialContext: l.dial, MaxIdleConnsPerHost: 1000}
		f(t, e, &http.Client{Transport: transport})
		_ = e.Close()
		transport.CloseIdleConnections()
		_ = server.Close()
		wg.Wait()
	})
}

// distinct is the body of a completion whose prompt shares no block with another serial.
func distinct(serial, in, out int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"prompt":[%d`, 1000000+serial)
	for range in - 1 {
		b.WriteString(",7")
	}
	fmt.Fprintf(&b, `],"max_tokens":%d,"ignore_eos":true,"stream":true}`, out)
	return b.String()
}

func send(ctx context.Context, client *http.Client, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://engine/v1/completions", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	return client.Do(request)
}

// The times that a client sees are those of the model: 19.5 ms + 1.9 ms for one sequence, 0.3 ms for a prompt token.
func TestClientSeesTheTimesOfTheModel(t *testing.T) {
	for name, test := range map[string]struct {
		speed float64
		ttft  time.Duration
		gap   time.Duration
	}{
		"real speed": {1, 51400 * time.Microsecond, 21400 * time.Microsecond},
		"ten times":  {10, 5140 * time.Microsecond, 2140 * time.Microsecond},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, engine.Config{Speed: test.speed}, func(t *testing.T, _ *engine.Engine, client *http.Client) {
				sent := time.Now()
				response, err := send(t.Context(), client, distinct(1, 100, 5))
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				var stamps []time.Duration
				lines := bufio.NewScanner(response.Body)
				for lines.Scan() {
					if strings.HasPrefix(lines.Text(), `data: {`) {
						stamps = append(stamps, time.Since(sent))
					}
				}
				if len(stamps) != 5 {
					t.Fatalf("%d chunks, want 5", len(stamps))
				}
				for i, got := range stamps {
					if want := test.ttft + time.Duration(i)*test.gap; got != want {
						t.Errorf("token %d after %v, want %v", i, got, want)
					}
				}
			})
		})
	}
}

// Concurrent clients over HTTP reach the capacity that the model computes, at a client's view of it.
func TestClosedLoopOverHTTPReachesTheTrueCapacity(t *testing.T) {
	const rounds = 4
	for _, n := range []int{1, 10, 40} {
		virtual(t, engine.Config{Speed: 10}, func(t *testing.T, e *engine.Engine, client *http.Client) {
			var wg sync.WaitGroup
			began := time.Now()
			for i := range n {
				wg.Go(func() {
					for round := range rounds {
						response, err := send(t.Context(), client, distinct(i*rounds+round, 1024, 128))
						if err != nil {
							t.Error(err)
							return
						}
						_, _ = io.Copy(io.Discard, response.Body)
						response.Body.Close()
					}
				})
			}
			wg.Wait()
			got := float64(n*rounds) / time.Since(began).Seconds()
			want := e.Capacity(n, model.Shape{Input: 1024, Output: 128}).Throughput
			// The prefills of the first round come as one burst, and a client that answers in no time still misses
			// the step that has just been planned.
			if math.Abs(got-want) > 0.04*want {
				t.Errorf("%.2f requests per second at concurrency %d, true capacity %.2f", got, n, want)
			}
		})
	}
}

func TestDisconnectAborts(t *testing.T) {
	for name, body := range map[string]string{
		"stream": distinct(1, 64, 1000),
		"plain":  `{"prompt":"hello","max_tokens":1000,"ignore_eos":true}`,
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, engine.Config{}, func(t *testing.T, e *engine.Engine, client *http.Client) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				response, err := send(ctx, client, body)
				if err == nil {
					_, err = io.ReadAll(response.Body)
					response.Body.Close()
				}
				if err == nil {
					t.Fatal("the answer came before the client left")
				}
				// One more step passes until the engine has noticed.
				time.Sleep(100 * time.Millisecond)
				s := e.State()
				if s.Running != 0 || s.KVUse != 0 || s.Totals.Aborted != 1 || s.Totals.GenerationTokens > 60 {
					t.Errorf("state after the client left: %+v", s)
				}
			})
		})
	}
}

// A stopped process must not be followed by a burst that makes up for hours.
func TestClockStartsAnewAfterALongStop(t *testing.T) {
	virtual(t, engine.Config{Clock: &stoppingClock{}}, func(t *testing.T, _ *engine.Engine, client *http.Client) {
		response, err := send(t.Context(), client, distinct(1, 16, 200))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		began := time.Now()
		_, _ = io.Copy(io.Discard, response.Body)
		// 199 steps of 21.4 ms, and the hour.
		if got := time.Since(began); got < time.Hour+4*time.Second {
			t.Errorf("the rest of the answer took %v", got)
		}
	})
}

// stoppingClock is the clock of the bubble, on which the third timer takes an hour.
type stoppingClock struct{ timers int }

func (*stoppingClock) Now() time.Time { return time.Now() }

func (c *stoppingClock) Timer(d time.Duration) (<-chan time.Time, func() bool) {
	c.timers++
	if c.timers == 3 {
		d += time.Hour
	}
	timer := time.NewTimer(d)
	return timer.C, timer.Stop
}

// patience reads an answer for a minute, and returns why it did not end.
func patience(t *testing.T, client *http.Client, body string) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	response, err := send(ctx, client, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.ReadAll(response.Body)
	return err
}
