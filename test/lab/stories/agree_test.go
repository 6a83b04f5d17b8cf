package stories

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// TestAgreement explains every second while load moves. LAB_AGREE is for how
// many minutes, LAB_HPA_SYNC how often the controller looks (15 s).
func TestAgreement(t *testing.T) {
	minutes, err := strconv.ParseFloat(os.Getenv("LAB_AGREE"), 64)
	if err != nil {
		t.Skip("needs the lab and minutes: run make lab-agree")
	}
	period := 15 * time.Second
	if text := os.Getenv("LAB_HPA_SYNC"); text != "" {
		if period, err = time.ParseDuration(text); err != nil {
			t.Fatalf("read LAB_HPA_SYNC: %v", err)
		}
	}
	source, directory, kubeconfig := bringUp(t, period)
	agreement := func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != 3 {
			ts.Fatalf("usage: agree SCALER WORKLOAD HPA")
		}
		a := agreement{ts: ts, scaler: args[0], workload: args[1], hpa: args[2], period: period, length: time.Duration(minutes * float64(time.Minute))}
		a.run()
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "agree",
		RequireExplicitExec: true,
		Setup:               func(env *testscript.Env) error { return setup(env, source, directory, kubeconfig) },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"wait-for": waitFor, "model": pinnedModel, "agree": agreement,
		},
	})
}

// agreement holds explanations against what the controller did, which a watch
// of its own tells.
type agreement struct {
	ts                    *testscript.TestScript
	scaler, workload, hpa string
	period, length        time.Duration

	mu       sync.Mutex
	statuses []status
	counts
}

// status is one state of the HPA's status and when the watch told it.
type status struct {
	since   time.Time
	desired int32
}

type counts struct{ explanations, exact, bounded, uncompared, disagreements, wrong, changes int }

func (a *agreement) run() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go a.watch(ctx)
	for limit := time.Now().Add(time.Minute); !a.watching(); time.Sleep(poll / 10) {
		if time.Now().After(limit) {
			a.ts.Fatalf("the watch of the HPA tells nothing")
		}
	}
	begin := time.Now()
	share := func(percent int) time.Duration { return a.length * time.Duration(percent) / 100 }
	loads := []struct {
		at, length  time.Duration
		concurrency int
	}{{share(5), share(30), 60}, {share(50), share(12), 25}}
	for n := 0; time.Since(begin) < a.length; n++ {
		if len(loads) > 0 && time.Since(begin) >= loads[0].at {
			a.load(len(loads), loads[0].concurrency, loads[0].length)
			loads = loads[1:]
		}
		a.sample()
		time.Sleep(time.Until(begin.Add(time.Duration(n+1) * time.Second)))
	}
	c := a.counts
	a.ts.Logf("sync period %v: %d explanations in %v, %d exact (%.1f %%), %d bounded, %d of a sync not comparable; %d states of the HPA; %d disagreements, %d wrong",
		a.period, c.explanations, a.length, c.exact, 100*float64(c.exact)/float64(max(1, c.explanations)), c.bounded, c.uncompared, c.changes, c.disagreements, c.wrong)
	if c.disagreements > 0 || c.wrong > 0 || c.exact == 0 || c.changes < 3 {
		a.ts.Fatalf("explanations and controller do not agree, or nothing happened")
	}
}

// watching says whether the watch has begun.
func (a *agreement) watching() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.statuses) > 0
}

// load starts requests that end by themselves.
func (a *agreement) load(n, concurrency int, length time.Duration) {
	output, err := run(a.ts, "kubectl", []string{"inference", "bench", a.workload, "--name", fmt.Sprintf("load-%d", n), "--allow-scaling", "--concurrency", strconv.Itoa(concurrency),
		"--prompt-tokens", "1024", "--output-tokens", "128", "--warmup", "1s", "--duration", length.Round(time.Second).String(), "--wait=false"})
	if err != nil {
		a.ts.Fatalf("start load: %v\n%s", err, output)
	}
}

// sample explains once.
func (a *agreement) sample() {
	begin := time.Now()
	output, err := run(a.ts, "kubectl-inference", []string{"explain-scaling", a.scaler, "--hpa-sync-period", a.period.String(), "-o", "json"})
	end := time.Now()
	if err != nil {
		a.ts.Fatalf("explain: %v\n%s", err, output)
	}
	var document record.ScalingExplanation
	if err := json.Unmarshal([]byte(output), &document); err != nil {
		a.ts.Fatalf("read explanation: %v\n%s", err, output)
	}
	for _, chain := range document.Chains {
		a.explanations++
		if chain.Decision == nil || chain.Check == nil || !chain.Check.Compared {
			a.uncompared++
			continue
		}
		if !chain.Check.Agrees {
			a.disagreements++
			a.show("disagrees", output)
		}
		if !chain.Decision.Exact {
			a.bounded++
			continue
		}
		a.exact++
		// A stopped sync computes no size: the status keeps an old one.
		if chain.Decision.Blocking == "none" && !a.seen(chain.Decision.Desired.Low, begin, end) {
			a.wrong++
			a.show("is wrong", output)
		}
	}
}

// show logs the first few that went wrong.
func (a *agreement) show(what, output string) {
	if a.disagreements+a.wrong <= 5 {
		a.ts.Logf("%s %s: %s", time.Now().Format(time.TimeOnly), what, output)
	}
}

// seen says whether the HPA wanted a size at some time of a span. A watch tells
// a little later.
func (a *agreement) seen(desired int32, begin, end time.Time) bool {
	time.Sleep(50 * time.Millisecond)
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, s := range a.statuses {
		over := i+1 < len(a.statuses) && a.statuses[i+1].since.Before(begin.Add(-time.Second))
		if !over && s.since.Before(end.Add(time.Second)) && s.desired == desired {
			return true
		}
	}
	return false
}

// watch follows the HPA's status.
func (a *agreement) watch(ctx context.Context) {
	path, err := lookPath(a.ts.Getenv("PATH"), "kubectl")
	if err != nil {
		return
	}
	cmd := exec.CommandContext(ctx, path, "get", "hpa", a.hpa, "--watch", "-o", "json")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+a.ts.Getenv("KUBECONFIG"))
	stdout, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return
	}
	decoder := json.NewDecoder(stdout)
	for {
		var object autoscalingv2.HorizontalPodAutoscaler
		if decoder.Decode(&object) != nil {
			_ = cmd.Wait()
			return
		}
		a.mu.Lock()
		if n := len(a.statuses); n == 0 || a.statuses[n-1].desired != object.Status.DesiredReplicas {
			a.changes++
		}
		a.statuses = append(a.statuses, status{time.Now(), object.Status.DesiredReplicas})
		a.mu.Unlock()
	}
}
