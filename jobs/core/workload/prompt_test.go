package workload_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/workload"
)

func TestTokenPromptLength(t *testing.T) {
	for _, n := range []int{1, 4, 5, 15, 16, 17, 1024, 39872} {
		prompt := workload.TokenPrompt(1, workload.NewID(0, 2, 7), n)
		if len(prompt) != n {
			t.Errorf("asked %d, got %d", n, len(prompt))
		}
		for _, id := range prompt {
			if id < 1000 || id >= 29000 {
				t.Fatalf("token id %d", id)
			}
		}
	}
}

func TestTokenPromptIsDeterministic(t *testing.T) {
	id := workload.NewID(3, 2, 99)
	if !slices.Equal(workload.TokenPrompt(5, id, 100), workload.TokenPrompt(5, id, 100)) {
		t.Error("two prompts of one id differ")
	}
	if slices.Equal(workload.TokenPrompt(5, id, 16), workload.TokenPrompt(6, id, 16)) {
		t.Error("another seed gives the same first block")
	}
	if first, second := workload.CommonWords().Text(5, id, 100), workload.CommonWords().Text(5, id, 100); first != second {
		t.Error("two texts of one id differ")
	}
}

// No two requests of a run share a first block, warm-up and measured ones of
// every case included (sglang#13934: the warm-up used the first prompt).
func TestPromptsShareNoFirstBlock(t *testing.T) {
	tokens, texts := map[string]bool{}, map[string]bool{}
	n := 0
	for caseIndex := range 4 {
		for _, set := range []uint8{0, 1, 2} {
			for place := range uint64(2000) {
				id := workload.NewID(caseIndex, set, place)
				tokens[fmt.Sprint(workload.TokenPrompt(1, id, 5))] = true
				texts[workload.CommonWords().Text(1, id, 11)] = true
				n++
			}
		}
	}
	if len(tokens) != n || len(texts) != n {
		t.Errorf("%d requests, %d first tokens, %d texts", n, len(tokens), len(texts))
	}
}

func TestSeed(t *testing.T) {
	seen := map[uint64]bool{}
	for _, run := range []string{"", "a", "b", "chat-0102"} {
		for _, seed := range []uint64{0, 1, 2} {
			seen[workload.Seed(seed, run)] = true
		}
	}
	if len(seen) != 12 {
		t.Errorf("%d seeds", len(seen))
	}
	if first, second := workload.Seed(1, "a"), workload.Seed(1, "a"); first != second {
		t.Error("two seeds of one run differ")
	}
}

func TestNewIDIsUnique(t *testing.T) {
	seen := map[workload.ID]bool{}
	n := 0
	for _, caseIndex := range []int{0, 1, 2, 500} {
		for _, set := range []uint8{0, 1, 2, 15} {
			for _, place := range []uint64{0, 1, 1 << 39} {
				seen[workload.NewID(caseIndex, set, place)] = true
				n++
			}
		}
	}
	if len(seen) != n {
		t.Errorf("%d of %d", len(seen), n)
	}
}

func TestText(t *testing.T) {
	if got := len(strings.Fields(workload.CommonWords().Text(1, 1, 300))); got != 300 {
		t.Errorf("%d words", got)
	}
}

func BenchmarkTokenPrompt(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		workload.TokenPrompt(1, 1, 1024)
	}
}
