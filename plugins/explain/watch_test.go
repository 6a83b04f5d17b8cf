package explain

import (
	"bufio"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

// TestWatch: a line at the start and one for each new decision; a change of a
// value alone writes none, and Ctrl-C is no failure.
func TestWatch(t *testing.T) {
	w := newWorld(t, "watch", apiserver.Admin)
	w.addAll(t, []service{steady("fine", 0)})
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	reader, writer := io.Pipe()
	factory := kube.NewFactory("test", nil)
	cmd := command(&options{factory: factory, streams: term.New(strings.NewReader(""), writer, io.Discard, nil), now: later})
	factory.AddFlags(cmd.PersistentFlags())
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"so/fine", "--watch", "--server", w.url, "--cache-dir", t.TempDir(), "-n", w.namespace})
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	done := make(chan error, 1)
	go func() {
		err := cmd.ExecuteContext(ctx)
		_ = writer.Close()
		done <- err
	}()
	lines := bufio.NewScanner(reader)
	next := func() string {
		if !lines.Scan() {
			t.Fatalf("no line: %v", lines.Err())
		}
		_, line, _ := strings.Cut(lines.Text(), "  ")
		return line
	}
	if got := next(); got != "so/fine  2 of 1-4; stay at 2; s0 queue depth asks for 2" {
		t.Errorf("got %q", got)
	}
	hpas := w.typed.AutoscalingV2().HorizontalPodAutoscalers(w.namespace)
	for _, average := range []string{"1900m", "3"} {
		hpa, err := hpas.Get(t.Context(), "keda-hpa-fine", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		hpa.Status.CurrentMetrics[0].External.Current.AverageValue = quantity(average)
		if average == "3" {
			hpa.Status.DesiredReplicas = 3
		}
		if _, err := hpas.UpdateStatus(t.Context(), hpa, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := next(); got != "so/fine  2 of 1-4; 2 -> 3; s0 queue depth asks for 3" {
		t.Errorf("got %q", got)
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("stopped: %v", err)
	}
}

func TestFrame(t *testing.T) {
	tests := map[string]struct {
		frame         string
		width, height int
		want          []string
	}{
		"fits":      {"a\nb\n", 10, 10, []string{"a", "b"}},
		"too wide":  {"abcdef\n", 4, 10, []string{"abcd"}},
		"too high":  {"a\nb\nc\nd\ne\nf\n", 10, 5, []string{"a", "b", "c", "... 3 more lines"}},
		"no screen": {"abcdef\n", 0, 0, []string{"abcdef"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := frameLines(test.frame, test.width, test.height); strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestPaint: what changed is painted over what was painted before, what did not
// is left alone.
func TestPaint(t *testing.T) {
	var out strings.Builder
	o := options{streams: term.New(nil, &out, io.Discard, nil)}
	document := document(t, "-f", "testdata/zero.yaml")
	paint := o.paint()
	for _, trouble := range []string{"", "", "gone"} {
		if err := paint(document, trouble); err != nil {
			t.Fatal(err)
		}
	}
	first, second, again := strings.Cut(out.String(), "\x1b[")
	if !again || strings.Count(out.String(), "DECISION") != 2 || !strings.Contains(second, "No newer state: gone") {
		t.Errorf("got %q", out.String())
	}
	if _, _, found := strings.Cut(second, "A\r\x1b[J"); !found || strings.Count(first, "\n") == 0 {
		t.Errorf("got %q", second)
	}
}

func TestWrap(t *testing.T) {
	const text = "  one two three\nshort\n"
	if got, want := wrap(text, 9), "  one two\n    three\nshort\n"; got != want {
		t.Errorf("got %q", got)
	}
	if wrap(text, 0) != text || cut("abcdef", 5) != "ab..." || cut("ab", 5) != "ab" {
		t.Error("cut or wrapped wrongly")
	}
}
