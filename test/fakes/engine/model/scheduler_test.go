package model_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine/model"
)

func newScheduler(t *testing.T, change func(*model.Config)) *model.Scheduler {
	t.Helper()
	c := model.Default()
	if change != nil {
		change(&c)
	}
	s, err := model.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func add(t *testing.T, s *model.Scheduler, rs ...*model.Request) {
	t.Helper()
	for _, r := range rs {
		if err := s.Add(r); err != nil {
			t.Fatal(err)
		}
	}
}

func request(serial int32, in, out int) *model.Request {
	return &model.Request{Prompt: model.DistinctPrompt(serial, in), Output: out}
}

// shape of a step, for comparison.
type shape struct {
	Batch, Prefill, Decode, Waiting int
	Duration                        time.Duration
}

func TestStepsOfOneBatch(t *testing.T) {
	s := newScheduler(t, func(c *model.Config) { c.MaxNumSeqs, c.MaxNumBatchedTokens = 3, 1000 })
	add(t, s, request(1, 600, 3), request(2, 600, 2), request(3, 10, 1), request(4, 10, 1))
	var got []shape
	for {
		step := s.Plan()
		if len(step.Work) == 0 {
			break
		}
		got = append(got, shape{len(step.Work), step.PrefillTokens, step.DecodeTokens, s.Waiting(), step.Duration})
		s.Complete(step)
	}
	ms := func(f float64) time.Duration { return time.Duration(f * float64(time.Millisecond)) }
	want := []shape{
		{2, 1000, 0, 2, ms(19.5 + 2*1.9 + 0.3*1000)}, // the second prompt is cut at the budget
		{3, 210, 1, 1, ms(19.5 + 3*1.9 + 0.3*210)},   // its rest, one decode, and the third prompt
		{3, 10, 2, 0, ms(19.5 + 3*1.9 + 0.3*10)},     // the third has left, the fourth takes its place
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if s.KVUse() != 0 {
		t.Errorf("kv use of an idle engine = %v", s.KVUse())
	}
}

func TestAddRefuses(t *testing.T) {
	s := newScheduler(t, nil)
	added := request(1, 4, 1)
	add(t, s, added)
	for name, test := range map[string]struct {
		request *model.Request
		tooLong bool
	}{
		"empty prompt":      {&model.Request{Output: 1}, false},
		"no output":         {request(2, 4, 0), false},
		"over model length": {request(3, 15000, 1), true},
		"added twice":       {added, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := s.Add(test.request)
			if err == nil || errors.Is(err, model.ErrTooLong) != test.tooLong {
				t.Errorf("error = %v, too long: want %v", err, test.tooLong)
			}
		})
	}
	if err := s.Add(request(4, 14999, 1)); err != nil {
		t.Errorf("a request of exactly the model length: %v", err)
	}
}

func TestValidate(t *testing.T) {
	for name, change := range map[string]func(*model.Config){
		"no sequences":                 func(c *model.Config) { c.MaxNumSeqs = 0 },
		"no time":                      func(c *model.Config) { c.Cost = model.Cost{} },
		"negative time":                func(c *model.Config) { c.Cost.PerPrefillToken = -1 },
		"budget under sequences":       func(c *model.Config) { c.MaxNumBatchedTokens = 39 },
		"one request exceeds kv cache": func(c *model.Config) { c.MaxModelLen = 3513*16 + 1 },
	} {
		t.Run(name, func(t *testing.T) {
			c := model.Default()
			change(&c)
			if _, err := model.New(c); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestPrefixCaching(t *testing.T) {
	for name, test := range map[string]struct {
		off           bool
		second        []int32
		cached        int
		prefillTokens int
	}{
		"equal prompt, last token is recomputed": {second: model.DistinctPrompt(1, 64), cached: 48, prefillTokens: 16},
		"longer prompt":                          {second: model.DistinctPrompt(1, 100), cached: 64, prefillTokens: 36},
		"other first token":                      {second: model.DistinctPrompt(2, 64), cached: 0, prefillTokens: 64},
		"off":                                    {off: true, second: model.DistinctPrompt(1, 64), cached: 0, prefillTokens: 64},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScheduler(t, func(c *model.Config) { c.PrefixCaching = !test.off })
			first := request(1, 64, 1)
			add(t, s, first)
			s.Complete(s.Plan())
			second := &model.Request{Prompt: test.second, Output: 1}
			add(t, s, second)
			step := s.Plan()
			s.Complete(step)
			if second.CachedTokens() != test.cached || step.PrefillTokens != test.prefillTokens {
				t.Errorf("cached %d, computed %d tokens; want %d and %d", second.CachedTokens(), step.PrefillTokens, test.cached, test.prefillTokens)
			}
			if got := s.Totals().PrefixHits; got != test.cached {
				t.Errorf("hits = %d, want %d", got, test.cached)
			}
			queries := 64 + len(test.second)
			if test.off {
				queries = 0
			}
			if got := s.Totals().PrefixQueries; got != queries {
				t.Errorf("queries = %d, want %d", got, queries)
			}
		})
	}
}

// A conversation: the second turn begins with the first prompt and the answer to it.
func TestPrefixCachingFindsGeneratedTokens(t *testing.T) {
	s := newScheduler(t, nil)
	token := func(i int) int32 { return int32(1000 + i) }
	first := &model.Request{Prompt: model.DistinctPrompt(1, 20), Output: 45, Token: token}
	add(t, s, first)
	for !first.Finished() {
		s.Complete(s.Plan())
	}
	prompt := append([]int32{}, first.Prompt...)
	for i := range 45 {
		prompt = append(prompt, token(i))
	}
	second := &model.Request{Prompt: append(prompt, 7, 7, 7), Output: 1}
	add(t, s, second)
	s.Complete(s.Plan())
	// 20 + 45 tokens, of which the last sampled one was never computed: four full blocks.
	if second.CachedTokens() != 64 {
		t.Errorf("cached %d tokens, want 64", second.CachedTokens())
	}
}

func TestPrefixCacheEvictsTheLeastRecentlyUsed(t *testing.T) {
	s := newScheduler(t, func(c *model.Config) { c.MaxModelLen, c.NumBlocks = 64, 8 })
	run := func(serial int32) int {
		r := request(serial, 63, 1)
		add(t, s, r)
		s.Complete(s.Plan())
		return r.CachedTokens()
	}
	run(1)
	run(2)
	if got := run(1); got != 48 {
		t.Errorf("cached %d tokens of a recent prompt, want 48", got)
	}
	run(3) // takes the blocks of prompt 2
	if got := run(1); got != 48 {
		t.Errorf("cached %d tokens of the prompt used last, want 48", got)
	}
	if got := run(2); got != 0 {
		t.Errorf("cached %d tokens of an evicted prompt", got)
	}
	s.ForgetPrefixes()
	if got := run(2); got != 0 {
		t.Errorf("cached %d tokens after the cache was emptied", got)
	}
}

func TestAbort(t *testing.T) {
	s := newScheduler(t, func(c *model.Config) { c.MaxNumSeqs = 1 })
	running, waiting, third := request(1, 32, 5), request(2, 32, 5), request(3, 32, 1)
	add(t, s, running, waiting, third)
	step := s.Plan()
	if !s.Abort(running) || !s.Abort(waiting) {
		t.Fatal("abort refused")
	}
	if got := s.Complete(step); len(got) != 0 {
		t.Errorf("%d tokens for an aborted request", len(got))
	}
	if s.KVUse() != 0 || s.Running() != 0 || s.Waiting() != 1 {
		t.Errorf("kv use %v, running %d, waiting %d after abort", s.KVUse(), s.Running(), s.Waiting())
	}
	if got := s.Complete(s.Plan()); len(got) != 1 || !got[0].Last || got[0].Request != third {
		t.Errorf("the next request did not run: %+v", got)
	}
	if s.Abort(third) || s.Abort(running) {
		t.Error("aborted a request that had ended")
	}
	if got := s.Totals().Aborted; got != 2 {
		t.Errorf("aborted = %d, want 2", got)
	}
}

// Random loads on engines short of everything: the limits hold in every step, no step is idle while work waits, first
// come is first served, and every request ends with exactly the tokens it asked for, preempted or not.
func TestInvariants(t *testing.T) {
	preemptions := 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 7))
		c := model.Default()
		c.MaxNumSeqs = 1 + rng.IntN(12)
		c.MaxNumBatchedTokens = c.MaxNumSeqs + rng.IntN(200)
		c.MaxModelLen = 256
		c.NumBlocks = 16 + rng.IntN(40)
		c.PrefixCaching = seed%2 == 0
		s, err := model.New(c)
		if err != nil {
			t.Fatal(err)
		}
		got, want := map[*model.Request]int{}, map[*model.Request]int{}
		var order []*model.Request
		var left = 60
		for round := 0; left > 0 || s.Running()+s.Waiting() > 0; round++ {
			for left > 0 && rng.IntN(3) == 0 {
				left--
				out := 1 + rng.IntN(100)
				r := request(int32(rng.IntN(20)), 1+rng.IntN(256-out), out)
				add(t, s, r)
				want[r] = out
			}
			step := s.Plan()
			if len(step.Work) == 0 && s.Waiting() > 0 {
				t.Fatalf("seed %d: idle with %d waiting", seed, s.Waiting())
			}
			checkStep(t, c, s, step)
			for _, r := range step.Admitted {
				if r.Preemptions() == 0 {
					order = append(order, r)
				}
			}
			preemptions += len(step.Preempted)
			for _, token := range s.Complete(step) {
				if token.Index != got[token.Request] {
					t.Fatalf("seed %d: token %d after %d tokens", seed, token.Index, got[token.Request])
				}
				got[token.Request]++
				if token.Last != (got[token.Request] == want[token.Request]) {
					t.Fatalf("seed %d: last=%v at token %d of %d", seed, token.Last, got[token.Request], want[token.Request])
				}
			}
			if round > 100000 {
				t.Fatalf("seed %d: no end", seed)
			}
		}
		for r, n := range want {
			if got[r] != n || r.Produced() != n || !r.Finished() {
				t.Errorf("seed %d: %d tokens of %d", seed, got[r], n)
			}
		}
		if len(order) != len(want) {
			t.Errorf("seed %d: %d of %d requests were admitted", seed, len(order), len(want))
		}
		if s.KVUse() != 0 {
			t.Errorf("seed %d: kv use %v at the end", seed, s.KVUse())
		}
	}
	if preemptions == 0 {
		t.Error("no preemption was provoked")
	}
}

func checkStep(t *testing.T, c model.Config, s *model.Scheduler, step *model.Step) {
	t.Helper()
	if s.Running() > c.MaxNumSeqs || len(step.Work) > s.Running() {
		t.Fatalf("batch %d of %d running, limit %d", len(step.Work), s.Running(), c.MaxNumSeqs)
	}
	if n := step.PrefillTokens + step.DecodeTokens; n > c.MaxNumBatchedTokens {
		t.Fatalf("%d tokens in a step, budget %d", n, c.MaxNumBatchedTokens)
	}
	if u := s.KVUse(); u < 0 || u > 1 {
		t.Fatalf("kv use %v", u)
	}
	if len(step.Work) > 0 && step.Duration != c.Cost.Of(len(step.Work), step.PrefillTokens) {
		t.Fatalf("duration %v of %d sequences and %d prefill tokens", step.Duration, len(step.Work), step.PrefillTokens)
	}
}

// The engine takes the newest request off first, and computes it again later, the cached part excepted.
func TestPreemptionTakesTheNewest(t *testing.T) {
	s := newScheduler(t, func(c *model.Config) { c.MaxModelLen, c.NumBlocks, c.PrefixCaching = 96, 6, false })
	older, newer := request(1, 40, 40), request(2, 40, 40)
	add(t, s, older, newer)
	tokens := 0
	for s.Running()+s.Waiting() > 0 {
		step := s.Plan()
		for _, r := range step.Preempted {
			if r != newer {
				t.Error("preempted the older request")
			}
		}
		tokens += len(s.Complete(step))
	}
	if older.Preemptions() != 0 || newer.Preemptions() != 1 || s.Totals().Preemptions != 1 {
		t.Errorf("preemptions: older %d, newer %d, total %d", older.Preemptions(), newer.Preemptions(), s.Totals().Preemptions)
	}
	if tokens != 80 {
		t.Errorf("%d tokens, want 80", tokens)
	}
}

// Work conservation: while there is work, the clock moves only by steps, so the busy time is the whole time.
func TestBusyWhileThereIsWork(t *testing.T) {
	sim, err := model.NewSimulation(model.Default())
	if err != nil {
		t.Fatal(err)
	}
	for i := range int32(200) {
		sim.Submit(request(i+1, 300, 40), time.Duration(i)*10*time.Millisecond)
	}
	for {
		more, err := sim.Step()
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
	}
	if busy := sim.Scheduler().Totals().Busy; busy != sim.Now() {
		t.Errorf("busy %v of %v with a backlog all along", busy, sim.Now())
	}
}

// One step with 200 sequences, each of which is replaced when it ends.
func BenchmarkStep(b *testing.B) {
	c := model.Default()
	c.MaxNumSeqs, c.NumBlocks = 200, 200*940
	s, err := model.New(c)
	if err != nil {
		b.Fatal(err)
	}
	serial := int32(0)
	for b.Loop() {
		for s.Running()+s.Waiting() < 200 {
			serial++
			if err := s.Add(request(serial, 1024, 1000)); err != nil {
				b.Fatal(err)
			}
		}
		s.Complete(s.Plan())
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(s.Totals().GenerationTokens), "ns/token")
}
