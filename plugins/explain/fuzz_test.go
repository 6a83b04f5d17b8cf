package explain

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
)

// FuzzExplain: no objects make it panic, whatever is asked about them.
func FuzzExplain(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, "s0.value=9", int64(1), int64(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, set string, replicas, target int64) {
		var objects chain.Objects
		if readObjects(&objects, bytes.NewReader(data)) != nil {
			return
		}
		// Numbers reach further when they need not be found as text.
		for i := range objects.HPAs {
			objects.HPAs[i].Status.CurrentReplicas = int32(replicas)
			objects.HPAs[i].Spec.MaxReplicas = int32(target)
		}
		in := inputs{chains: objects.All(), at: savedAt(objects, hpa.DefaultSyncPeriod)}
		if settings, err := parseSettings([]string{set}); err == nil {
			in.settings = settings
		}
		document := explain(in)
		_ = addWhatIf(&document, in)
		for i, link := range in.chains {
			history := historyOf(link, in.at.time)
			document.Chains[i].History = &history
			lintLead(link, &document.Chains[i], time.Minute, 15*time.Second)
		}
		for _, width := range []int{0, 40} {
			if err := render(io.Discard, document, width); err != nil {
				t.Error(err)
			}
		}
		if err := renderScan(io.Discard, scan(in), 40); err != nil {
			t.Error(err)
		}
	})
}
