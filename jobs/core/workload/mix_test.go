package workload_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/workload"
)

func lengths(t *testing.T, text string) workload.Lengths {
	t.Helper()
	l, err := workload.ParseLengths(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestTurnsAreDeterministic(t *testing.T) {
	mix := workload.Mix{Prompt: lengths(t, "lognormal:1024:512"), Output: lengths(t, "uniform:16:256"), Sessions: &workload.Sessions{Turns: 3, NewTokens: 20, ThinkSeconds: 2, ThinkExponential: true}}
	if diff := cmp.Diff(mix.Turns(1, 2, 1, 7, 7), mix.Turns(1, 2, 1, 7, 9)); diff != "" {
		t.Error(diff)
	}
	if cmp.Diff(mix.Turns(1, 2, 1, 7, 7), mix.Turns(2, 2, 1, 7, 7)) == "" {
		t.Error("another seed gives the same session")
	}
}

// Each turn's prompt begins with the whole prompt of the turn before, and is
// longer by the answer and the new tokens.
func TestSessionsGrow(t *testing.T) {
	mix := workload.Mix{Prompt: lengths(t, "uniform:10:50"), Output: lengths(t, "uniform:5:9"), Sessions: &workload.Sessions{Turns: 4, NewTokens: 20, ThinkSeconds: 2}}
	longest, _ := mix.Longest()
	for place := range uint64(50) {
		turns := mix.Turns(3, 0, 1, place, place)
		if len(turns) != 4 || turns[0].ThinkSeconds != 0 || turns[1].ThinkSeconds != 2 {
			t.Fatalf("turns %+v", turns)
		}
		for i := 1; i < len(turns); i++ {
			before, now := turns[i-1].Prompt.Tokens(3), turns[i].Prompt.Tokens(3)
			if !slices.Equal(before, now[:len(before)]) || len(now) != len(before)+turns[i-1].Output+20 || len(now) > longest {
				t.Fatalf("turn %d: %d tokens after %d, longest %d", i, len(now), len(before), longest)
			}
			textBefore, text := turns[i-1].Prompt.Text(3, workload.CommonWords(), 0), turns[i].Prompt.Text(3, workload.CommonWords(), 0)
			if !strings.HasPrefix(text, textBefore) {
				t.Fatal("the text does not grow")
			}
		}
	}
}

// Prompts of one group share exactly the prefix; what follows is their own.
func TestSharedPrefix(t *testing.T) {
	mix := workload.Mix{Prompt: workload.Fixed(200), Output: workload.Fixed(8), Shared: &workload.SharedPrefix{Tokens: 128, Groups: 3}}
	prefixes, rests := map[string]int{}, map[string]bool{}
	for place := range uint64(300) {
		tokens := mix.Turns(1, 0, 1, place, place)[0].Prompt.Tokens(1)
		if len(tokens) != 200 {
			t.Fatalf("%d tokens", len(tokens))
		}
		prefixes[fmt.Sprint(tokens[:128])]++
		rests[fmt.Sprint(tokens[128:144])] = true
	}
	if len(prefixes) != 3 || len(rests) != 300 {
		t.Errorf("%d prefixes, %d rests", len(prefixes), len(rests))
	}
	for _, n := range prefixes {
		if n < 70 {
			t.Errorf("a group has %d of 300", n)
		}
	}
}

// Blocks with one hash id are one text, as in the recorded load.
func TestTraceShares(t *testing.T) {
	trace := &workload.Trace{AtSeconds: []float64{0, 1}, PromptTokens: []int{1100, 700}, OutputTokens: []int{52, 10}, HashIDs: [][]uint64{{7, 8, 9}, {7, 11}}}
	mix := workload.Mix{Trace: trace}
	first, second := mix.Turns(1, 0, 1, 0, 0)[0], mix.Turns(1, 0, 1, 1, 1)[0]
	a, b := first.Prompt.Tokens(1), second.Prompt.Tokens(1)
	if len(a) != 1100 || len(b) != 700 || first.Output != 52 || second.Output != 10 {
		t.Errorf("%d, %d tokens, output %d, %d", len(a), len(b), first.Output, second.Output)
	}
	if !slices.Equal(a[:512], b[:512]) || slices.Equal(a[512:528], b[512:528]) || !mix.Shares() {
		t.Error("the common beginning is not the first block")
	}
}

// Every text of a run begins in another way than the others (sglang#13934).
func TestWords(t *testing.T) {
	words := workload.CommonWords()
	seen := map[string]bool{}
	for _, word := range words {
		if seen[word] {
			t.Errorf("%s is there twice", word)
		}
		seen[word] = true
	}
	few := words[:16]
	texts := map[string]bool{}
	for place := range uint64(5000) {
		texts[few.Text(1, workload.NewID(0, 1, place), 16)] = true
	}
	if len(texts) != 5000 {
		t.Errorf("%d different texts", len(texts))
	}
}

func TestParseLengths(t *testing.T) {
	tests := map[string]workload.Lengths{
		"1024":                     {Kind: "fixed", Mean: 1024, Min: 1024, Max: 1024},
		"uniform:64:2048":          {Kind: "uniform", Min: 64, Max: 2048},
		"normal:1000:100":          {Kind: "normal", Mean: 1000, SD: 100, Min: 1, Max: 1400},
		"lognormal:500:250:16:900": {Kind: "lognormal", Mean: 500, SD: 250, Min: 16, Max: 900},
		"list:64:128":              {Kind: "histogram", Min: 64, Max: 128, Values: []int{64, 128}, Weights: []float64{1, 1}},
		"histogram:64=3:8=1":       {Kind: "histogram", Min: 8, Max: 64, Values: []int{64, 8}, Weights: []float64{3, 1}},
	}
	for text, want := range tests {
		if diff := cmp.Diff(want, lengths(t, text)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	for _, text := range []string{"", "x", "0", "-4", "1.5", "uniform", "uniform:9", "uniform:9:5", "normal:5", "normal:5:1:9:12", "normal:NaN:1", "lognormal:0:1", "list:a", "list:3=1", "histogram:3", "histogram:3=-1", "histogram:3=0", "zipf:1:2", "99999999999"} {
		if l, err := workload.ParseLengths(text); failure.KindOf(err) != failure.Usage || failure.HintOf(err) == "" {
			t.Errorf("%q: %+v, %v", text, l, err)
		}
	}
	for text, want := range map[string]int{"1024": 1024, "uniform:64:2048": 1056, "normal:1000:100": 1000, "histogram:64=3:8=1": 50} {
		if got := lengths(t, text).Typical(); got != want {
			t.Errorf("%s is typically %d", text, got)
		}
	}
}

func TestMixRefuses(t *testing.T) {
	fixed := workload.Mix{Prompt: workload.Fixed(64), Output: workload.Fixed(8)}
	for name, change := range map[string]func(*workload.Mix){
		"no prompt":              func(m *workload.Mix) { m.Prompt = workload.Lengths{} },
		"prefix as long as it":   func(m *workload.Mix) { m.Shared = &workload.SharedPrefix{Tokens: 64, Groups: 1} },
		"no group":               func(m *workload.Mix) { m.Shared = &workload.SharedPrefix{Tokens: 6} },
		"no turn":                func(m *workload.Mix) { m.Sessions = &workload.Sessions{NewTokens: 1} },
		"nothing new":            func(m *workload.Mix) { m.Sessions = &workload.Sessions{Turns: 2} },
		"thinking below nothing": func(m *workload.Mix) { m.Sessions = &workload.Sessions{Turns: 2, NewTokens: 1, ThinkSeconds: -1} },
		"endless context":        func(m *workload.Mix) { m.Sessions = &workload.Sessions{Turns: 1000, NewTokens: 100000} },
	} {
		mix := fixed
		if err := mix.Validate(); err != nil {
			t.Fatal(err)
		}
		if change(&mix); mix.Validate() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
