package tune

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

// when calls do once ScaledObject r1 has the threshold on its first trigger.
func (c *cluster) when(ctx context.Context, want string, do func() error) error {
	watch, err := c.resource("so").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer watch.Stop()
	for {
		object, err := c.resource("so").Get(ctx, "r1", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if threshold(object, 0) == want {
			return do()
		}
		select {
		case <-watch.ResultChan():
		case <-ctx.Done():
			return fmt.Errorf("wait for threshold %s: %w", want, ctx.Err())
		}
	}
}

func TestSettleReports(t *testing.T) {
	tests := map[string]struct {
		hpa     string
		message string
	}{
		"no HPA":                 {"", "there is no HPA keda-hpa-r1"},
		"the HPA stays":          {hpa("keda-hpa-r1", "2500m", "12", "Value"), "HPA keda-hpa-r1 has target 2.5 (AverageValue) for trigger queue depth, not 1.23 (AverageValue)"},
		"the metric type stays":  {hpa("keda-hpa-r1", "1230m", "12", "AverageValue"), "HPA keda-hpa-r1 has target 12 (AverageValue) for trigger p99 latency, not 12 (Value)"},
		"the HPA has no trigger": {hpa("keda-hpa-r1", "1230m", "", ""), "HPA keda-hpa-r1 has no target for trigger p99 latency"},
	}
	c := start(t, "settle")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c.create("so", scaledObject)
			defer c.server.Kubectl(t, "", "delete", "so,hpa", "--all", "-n", c.namespace)
			if test.hpa != "" {
				c.create("hpa", test.hpa)
			}
			got := c.tune(apiserver.Admin, "so/r1", "--from", envelope(t), "--apply", "-o", "json", "--settle-timeout", "500ms")
			wantFailure(t, got, failure.Timeout, "the change is made; wait for it to arrive: "+test.message, "kubectl describe scaledobject r1 -n settle")
			if !strings.Contains(got.stdout, `"kind": "TuningPlan"`) {
				t.Errorf("the plan is not printed: %q", got.stdout)
			}
		})
	}
}

func TestSettlePaused(t *testing.T) {
	c := start(t, "paused")
	c.create("so", strings.Replace(scaledObject, "annotations: {}", `annotations: {autoscaling.keda.sh/paused: "true"}`, 1))
	got := c.tune(apiserver.Admin, "so/r1", "--from", envelope(t), "--apply", "--settle-timeout", "30s")
	if got.err != nil || !strings.Contains(got.stderr, "is paused: there is no HPA until that ends") {
		t.Errorf("got %v, %q", got.err, got.stderr)
	}
}

// An owner that this tool does not know of writes the old threshold again.
func TestSettleReverted(t *testing.T) {
	c := start(t, "reverted")
	c.create("so", scaledObject)
	c.create("hpa", hpa("keda-hpa-r1", "1230m", "12", "Value"))
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	go func() {
		done <- c.when(ctx, "1.23", func() error {
			return c.patch(ctx, "so", "r1", `[{"op":"replace","path":"/spec/triggers/0/metadata/threshold","value":"2.0"}]`)
		})
	}()
	// It comes in the middle of the time for which the change must last.
	o := &options{pace: pace{look: 20 * time.Millisecond, settled: time.Hour}}
	got := c.tuneAt(o, apiserver.Admin, "", "so/r1", "--from", envelope(t), "--apply", "--settle-timeout", "2s")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	wantFailure(t, got, failure.Timeout, "ScaledObject r1 does not have threshold 1.23 (AverageValue) on trigger queue depth: its owner may have written over it", "kubectl describe")
}

// A change that is in place at the end of the time, but not for long.
func TestSettleNotYet(t *testing.T) {
	c := start(t, "notyet")
	c.create("so", scaledObject)
	c.create("hpa", hpa("keda-hpa-r1", "1230m", "12", "Value"))
	o := &options{pace: pace{look: 20 * time.Millisecond, settled: time.Hour}}
	got := c.tuneAt(o, apiserver.Admin, "", "so/r1", "--from", envelope(t), "--apply", "--settle-timeout", "500ms")
	wantFailure(t, got, failure.Timeout, "it is there, but not for long enough to last", "")
}

// Ctrl-C while it waits is no timeout.
func TestSettleInterrupted(t *testing.T) {
	c := start(t, "interrupted")
	c.create("so", scaledObject)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- c.when(t.Context(), "1.23", func() error { cancel(); return nil })
	}()
	o := &options{pace: pace{look: 20 * time.Millisecond, settled: time.Hour}}
	got := c.tuneIn(ctx, o, apiserver.Admin, "", "so/r1", "--from", envelope(t), "--apply")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !errors.Is(got.err, context.Canceled) || failure.KindOf(got.err) != failure.Interrupted {
		t.Errorf("got %v", got.err)
	}
}

func TestThousandths(t *testing.T) {
	for milli, want := range map[int64]string{0: "0", 1: "0.001", 10: "0.01", 1230: "1.23", 12000: "12", 1200000: "1200"} {
		if got := thousandths(milli); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
