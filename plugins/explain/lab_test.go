package explain

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/test/golden"
)

// TestLab explains objects that a real controller and a real KEDA wrote in the
// lab (Kubernetes 1.37.2, KEDA 2.21.0, syncs every 5 s), without a cluster. The
// numbers are what the controller decided; agreement is with its own status.
func TestLab(t *testing.T) {
	tests := map[string]struct {
		state         string
		from, desired int32
		raw           int32
		winner        string
		able, limited string
	}{
		"steady":        {record.ChainScaled, 1, 1, 1, "queue depth", "ReadyForNewScale", "DesiredWithinRange"},
		"tolerance":     {record.ChainScaled, 1, 1, 1, "queue depth", "ReadyForNewScale", "DesiredWithinRange"},
		"window-up":     {record.ChainScaled, 1, 1, 6, "queue depth", "ScaleUpStabilized", "DesiredWithinRange"},
		"limited-up":    {record.ChainScaled, 2, 2, 6, "queue depth", "ReadyForNewScale", "ScaleUpLimit"},
		"window-down":   {record.ChainScaled, 6, 6, 1, "kv cache", "ScaleDownStabilized", "DesiredWithinRange"},
		"rescaled-down": {record.ChainScaled, 6, 3, 1, "kv cache", "SucceededRescale", "ScaleDownLimit"},
		"limited-down":  {record.ChainScaled, 3, 3, 1, "kv cache", "ReadyForNewScale", "ScaleDownLimit"},
		"minimum":       {record.ChainScaled, 1, 1, 1, "kv cache", "ReadyForNewScale", "DesiredWithinRange"},
		"one-broken":    {record.ChainScaled, 1, 1, 1, "p99 latency", "ReadyForNewScale", "DesiredWithinRange"},
		"fallback":      {record.ChainScaled, 3, 3, 3, "queue depth", "ReadyForNewScale", "DesiredWithinRange"},
		"composite":     {record.ChainScaled, 3, 3, 3, "composite-metric", "ReadyForNewScale", "DesiredWithinRange"},
		"cooldown":      {record.ChainScaled, 2, 2, 0, "prometheus", "ScaleDownStabilized", "DesiredWithinRange"},
		"all-broken":    {record.ChainScaled, 1, 0, -1, "", "SucceededGetScale", ""},
		"two-hpas":      {record.ChainScaled, 3, 3, -1, "", "SucceededGetScale", "DesiredWithinRange"},
		"zero":          {record.ChainZero, 0, 0, -1, "", "SucceededGetScale", "DesiredWithinRange"},
		"paused":        {state: record.ChainPaused},
		"static":        {state: record.ChainStatic},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", "lab", name+".yaml")
			stdout, stderr, err := run(t, "", "-f", file)
			if err != nil || stderr != "" {
				t.Fatalf("%v %s", err, stderr)
			}
			golden.Compare(t, filepath.Join("lab", name+".golden"), stdout)
			chain := document(t, "-f", file).Chains[0]
			if chain.State != test.state {
				t.Fatalf("state %s", chain.State)
			}
			if test.able == "" {
				if chain.Decision != nil || chain.Check != nil {
					t.Errorf("got %+v", chain.Decision)
				}
				return
			}
			check := chain.Check
			if !check.Compared || !check.Agrees || check.DesiredReplicas != test.desired || check.AbleToScale != test.able || check.ScalingLimited != test.limited {
				t.Errorf("got %+v", check)
			}
			raw := int32(-1)
			if n, known := exact(chain.Decision.Raw); known {
				raw = n
			}
			if chain.Decision.From != test.from || raw != test.raw {
				t.Errorf("from %d, the metrics ask for %d", chain.Decision.From, raw)
			}
			winner := ""
			if at := slices.IndexFunc(chain.Triggers, func(t record.ScalingTrigger) bool { return t.Winner }); at >= 0 {
				winner = chain.Triggers[at].Label
			}
			if winner != test.winner {
				t.Errorf("%q wins", winner)
			}
		})
	}
}
