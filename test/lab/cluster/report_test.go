package cluster

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/lab/process"
)

// clock is a clock that moves a second each time it is read.
func clock() func() time.Time {
	now := time.Unix(0, 0)
	return func() time.Time { now = now.Add(time.Second); return now }
}

func nothing(context.Context) error { return nil }

// What is told inside arrives outside: steps with their durations, and an error
// with its kind, hint and log.
func TestProgress(t *testing.T) {
	refused := failure.New(failure.Unreachable, "look at the log", "wait for etcd: %w",
		&process.Silent{Err: errors.New("connection refused"), Tail: "  address in use"})
	tests := map[string]struct {
		inside   func(*Report) error
		want     string
		wantErr  string
		wantKind failure.Kind
		wantHint string
		wantTail string
	}{
		"ready": {
			inside: func(r *Report) error {
				return errors.Join(r.Step(context.Background(), "etcd", nothing), r.send(event{Ready: true}))
			},
			want: "etcd                            1.0s\n",
		},
		"failed": {
			inside:   func(r *Report) error { return r.fail(refused) },
			wantErr:  "start lab: wait for etcd: connection refused",
			wantKind: failure.Unreachable, wantHint: "look at the log", wantTail: "  address in use",
		},
		"killed": {
			inside:   func(r *Report) error { return r.Step(context.Background(), "etcd", nothing) },
			want:     "etcd                            1.0s\n",
			wantErr:  "start lab: it ended: EOF",
			wantKind: failure.Failed, wantHint: "the logs are in /x/log",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var pipe, out bytes.Buffer
			if err := tt.inside(newEvents(&pipe, clock())); err != nil {
				t.Fatal(err)
			}
			err := follow(Options{Layout: "/x", Report: NewReport(&out, clock())}, &pipe)
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			if tt.wantErr == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || err.Error() != tt.wantErr {
				t.Fatalf("error %v, want %s", err, tt.wantErr)
			}
			if failure.KindOf(err) != tt.wantKind || failure.HintOf(err) != tt.wantHint || process.TailOf(err) != tt.wantTail {
				t.Errorf("kind %d, hint %q, log %q", failure.KindOf(err), failure.HintOf(err), process.TailOf(err))
			}
		})
	}
}

// When whoever started the lab has gone, a step fails, and with it the start.
func TestProgressNobodyListens(t *testing.T) {
	r, w := io.Pipe()
	_ = r.Close()
	err := newEvents(w, clock()).Step(t.Context(), "etcd", nothing)
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error %v", err)
	}
}

func TestQuickStepsAreNotTold(t *testing.T) {
	var out bytes.Buffer
	still := func() time.Time { return time.Unix(0, 0) }
	if err := NewReport(&out, still).Step(t.Context(), "build lab", nothing); err != nil {
		t.Fatal(err)
	}
	if out.Len() > 0 {
		t.Errorf("output %q", out.String())
	}
}

// The relay passes on the end of one direction while the other still speaks, as
// kubectl exec needs.
func TestForward(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		conn, err := server.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		all, err := io.ReadAll(conn) // until the client has said all
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, strings.ToUpper(string(all)))
	}()
	socket, address, err := listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := forward(t.Context(), socket, server.Addr().String(), func(err error) { t.Error(err) }); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != "HELLO" {
		t.Errorf("answer %q", got)
	}
}
