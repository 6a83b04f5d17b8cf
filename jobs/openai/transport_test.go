package openai_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/openai"
)

// streamer answers with two tokens and says which protocol and headers came.
func streamer(seen func(*http.Request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen(r)
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, text("a"))
		_ = http.NewResponseController(w).Flush()
		time.Sleep(5 * ms)
		fmt.Fprint(w, text("b")+finish+usage2+done)
	})
}

func serve(t *testing.T, protocols func(*http.Protocols), secure bool, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.Protocols = new(http.Protocols)
	protocols(server.Config.Protocols)
	if secure {
		server.EnableHTTP2 = server.Config.Protocols.HTTP2()
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return server
}

func TestTransportSpeaks(t *testing.T) {
	http1 := func(p *http.Protocols) { p.SetHTTP1(true) }
	both := func(p *http.Protocols) { p.SetHTTP1(true); p.SetHTTP2(true) }
	clear := func(p *http.Protocols) { p.SetHTTP1(true); p.SetUnencryptedHTTP2(true) }
	tests := map[string]struct {
		server   func(*http.Protocols)
		secure   bool
		http     string
		protocol string
		class    record.ErrorClass
	}{
		"1.1":                             {clear, false, record.HTTP1, "HTTP/1.1", ""},
		"1.1 over TLS that offers 2":      {both, true, record.HTTP1, "HTTP/1.1", ""},
		"2 over TLS":                      {both, true, record.HTTP2, "HTTP/2.0", ""},
		"2 in the clear":                  {clear, false, record.HTTP2Clear, "HTTP/2.0", ""},
		"2 of a server that has 1.1 only": {http1, true, record.HTTP2, "", record.ErrorTLS},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := serve(t, test.server, test.secure, streamer(func(*http.Request) {}))
			transport := openai.Transport{HTTP: test.http}
			if test.secure {
				transport.CA = []string{authority(server)}
			}
			client, err := transport.Client()
			if err != nil {
				t.Fatal(err)
			}
			c := &openai.Client{HTTP: client, URL: server.URL, Timeout: 20 * time.Second, Now: time.Now}
			for i := range 2 {
				reply := c.Do(t.Context(), record.APICompletions, []byte(`{}`), nil)
				if reply.Class != test.class || reply.Protocol != test.protocol {
					t.Fatalf("%s %q, %q", reply.Class, reply.Message, reply.Protocol)
				}
				if test.class != "" {
					return
				}
				if reply.Chunks != 2 || reply.OutputTokens != 2 || reply.ReusedConn != (i == 1) {
					t.Errorf("reply %+v", reply)
				}
				if dialed := !reply.Dialed.IsZero(); dialed != (i == 0) || !reply.Secured.IsZero() != (test.secure && i == 0) {
					t.Errorf("request %d dialed %v, secured %v", i, reply.Dialed, reply.Secured)
				}
				if reply.Connected.Before(reply.Dialed) || reply.Header.Before(reply.Wrote) || i == 0 && reply.Dialed.Before(reply.Sent) {
					t.Errorf("phases out of order: %+v", reply)
				}
			}
		})
	}
}

// With HTTP/2, requests share connections, and none waits for another.
func TestHTTP2Streams(t *testing.T) {
	var mutex sync.Mutex
	inFlight, peak := 0, 0
	all := make(chan struct{})
	const n = 400 // more than the 250 streams that the server lets on one connection
	server := serve(t, func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }, false, streamer(func(*http.Request) {
		mutex.Lock()
		if inFlight++; inFlight > peak {
			peak = inFlight
		}
		if peak == n {
			select {
			case <-all:
			default:
				close(all)
			}
		}
		mutex.Unlock()
		select {
		case <-all:
		case <-time.After(10 * time.Second):
		}
	}))
	client, err := openai.Transport{HTTP: record.HTTP2Clear}.Client()
	if err != nil {
		t.Fatal(err)
	}
	c := &openai.Client{HTTP: client, URL: server.URL, Timeout: time.Minute, Now: time.Now}
	var wait sync.WaitGroup
	for range n {
		wait.Go(func() {
			if reply := c.Do(t.Context(), record.APICompletions, []byte(`{}`), nil); reply.Class != "" {
				t.Errorf("%s %s", reply.Class, reply.Message)
			}
		})
	}
	wait.Wait()
	if peak != n {
		t.Errorf("%d at once (guidellm#487)", peak)
	}
}

func authority(server *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

func TestTransportRefusesWhatIsNoCA(t *testing.T) {
	if _, err := (openai.Transport{CA: []string{"oops"}}).Client(); failure.KindOf(err) != failure.Usage {
		t.Errorf("got %v", err)
	}
}

func TestClientHeaders(t *testing.T) {
	var got *http.Request
	server := httptest.NewServer(streamer(func(r *http.Request) { got = r }))
	defer server.Close()
	c := &openai.Client{HTTP: openai.NewHTTP(false), URL: server.URL, Key: "key", Timeout: time.Minute, Now: time.Now,
		Headers: map[string]string{"x-tenant": "research", "host": "llm.example", "User-Agent": "mine"}}
	if reply := c.Do(t.Context(), record.APICompletions, []byte(`{}`), nil); reply.Class != "" {
		t.Fatal(reply.Message)
	}
	if got.Header.Get("X-Tenant") != "research" || got.Host != "llm.example" || got.UserAgent() != "mine" || got.Header.Get("Authorization") != "Bearer key" || got.Header.Get("Accept-Encoding") != "identity" {
		t.Errorf("%s %v", got.Host, got.Header)
	}
}

// A proxy that buffers passes a whole answer on in one burst; that burst is
// longer than a read.
func TestBufferedBurst(t *testing.T) {
	for name, test := range map[string]struct {
		pause time.Duration
		want  bool
	}{"burst": {0, true}, "stream": {2 * ms, false}} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for i := range 200 {
					fmt.Fprint(w, text(strings.Repeat("word ", 20)))
					if test.pause > 0 && i%10 == 0 {
						_ = http.NewResponseController(w).Flush()
						time.Sleep(test.pause)
					}
				}
				fmt.Fprint(w, finish+done)
			}))
			defer server.Close()
			c := &openai.Client{HTTP: openai.NewHTTP(false), URL: server.URL, Timeout: time.Minute, Now: time.Now}
			reply := c.Do(t.Context(), record.APICompletions, []byte(`{}`), nil)
			if got := strings.Contains(strings.Join(reply.Flags, " "), openai.FlagBuffered); got != test.want || reply.Chunks != 200 {
				t.Errorf("flags %v, %d chunks in %v", reply.Flags, reply.Chunks, reply.LastToken.Sub(reply.FirstToken))
			}
		})
	}
}

func TestCountTokens(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		answer string
		n      int
		known  bool
		kind   failure.Kind
	}{
		"counted":      {200, `{"count":7,"max_model_len":10,"tokens":[1]}`, 7, true, 0},
		"not there":    {404, `{"detail":"Not Found"}`, 0, false, 0},
		"not let past": {403, `denied`, 0, false, 0},
		"a page":       {200, `<html>`, 0, false, 0},
		"broken":       {503, `{"error":{"message":"no backend"}}`, 0, false, failure.Unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			var path, body string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				data, _ := io.ReadAll(r.Body)
				path, body = r.URL.Path, string(data)
				w.WriteHeader(test.status)
				fmt.Fprint(w, test.answer)
			}))
			defer server.Close()
			c := &openai.Client{HTTP: openai.NewHTTP(false), URL: server.URL + "/v1", Timeout: time.Minute, Now: time.Now}
			n, known, err := c.CountTokens(t.Context(), record.APIChat, "m", " the and")
			if n != test.n || known != test.known || (err != nil) != (test.kind != 0) || err != nil && failure.KindOf(err) != test.kind {
				t.Errorf("%d %v %v", n, known, err)
			}
			if path != "/tokenize" || !strings.Contains(body, `"messages"`) {
				t.Errorf("%s %s", path, body)
			}
		})
	}
}
