package model

import (
	"container/heap"
	"time"
)

// Record is what one request experienced, in engine time since the start of the simulation.
type Record struct {
	Request   *Request
	Arrived   time.Duration
	Scheduled time.Duration // first left the queue
	First     time.Duration // first token
	Last      time.Duration // last token
}

// TTFT is the time to first token.
func (r Record) TTFT() time.Duration { return r.First - r.Arrived }

// E2E is the whole latency.
func (r Record) E2E() time.Duration { return r.Last - r.Arrived }

// Simulation runs a [Scheduler] on a virtual clock.
type Simulation struct {
	// Finished is called for each finished request; it may submit more.
	Finished func(Record)

	scheduler *Scheduler
	now       time.Duration
	arrivals  arrivals
	open      map[*Request]*Record
	serial    int
	area      Averages
}

// Averages are means over time of a simulation, idle time included.
type Averages struct {
	Running, Waiting, KVUse float64
}

// NewSimulation returns a simulation at time zero.
func NewSimulation(c Config) (*Simulation, error) {
	s, err := New(c)
	if err != nil {
		return nil, err
	}
	return &Simulation{scheduler: s, open: make(map[*Request]*Record)}, nil
}

// Scheduler returns the engine, for inspection.
func (s *Simulation) Scheduler() *Scheduler { return s.scheduler }

// Now is the virtual time.
func (s *Simulation) Now() time.Duration { return s.now }

// Averages returns the means so far.
func (s *Simulation) Averages() Averages {
	t := s.now.Seconds()
	if t == 0 {
		return Averages{}
	}
	return Averages{Running: s.area.Running / t, Waiting: s.area.Waiting / t, KVUse: s.area.KVUse / t}
}

// Submit lets a request arrive at a time that is not in the past.
func (s *Simulation) Submit(r *Request, at time.Duration) {
	s.serial++
	heap.Push(&s.arrivals, arrival{at: max(at, s.now), serial: s.serial, request: r})
}

// Step advances by one engine step, or to the next arrival when the engine is idle. It returns false when there is
// nothing left to do, and the error of a request that could not be added.
func (s *Simulation) Step() (bool, error) {
	for len(s.arrivals) > 0 && s.arrivals[0].at <= s.now {
		a := heap.Pop(&s.arrivals).(arrival)
		if err := s.scheduler.Add(a.request); err != nil {
			return false, err
		}
		s.open[a.request] = &Record{Request: a.request, Arrived: a.at, Scheduled: -1}
	}
	step := s.scheduler.Plan()
	if len(step.Work) == 0 {
		if len(s.arrivals) == 0 {
			return false, nil
		}
		s.now = s.arrivals[0].at
		return true, nil
	}
	for _, r := range step.Admitted {
		if rec := s.open[r]; rec.Scheduled < 0 {
			rec.Scheduled = s.now
		}
	}
	d := step.Duration.Seconds()
	s.area.Running += d * float64(s.scheduler.Running())
	s.area.Waiting += d * float64(s.scheduler.Waiting())
	s.area.KVUse += d * s.scheduler.KVUse()
	s.now += step.Duration
	for _, t := range s.scheduler.Complete(step) {
		rec := s.open[t.Request]
		if t.Index == 0 {
			rec.First = s.now
		}
		if t.Last {
			rec.Last = s.now
			delete(s.open, t.Request)
			if s.Finished != nil {
				s.Finished(*rec)
			}
		}
	}
	return true, nil
}

// Result sums up a closed loop.
type Result struct {
	Records    []Record // of the requests that finished in the measured window
	Window     time.Duration
	Throughput float64 // requests per second in the window
	Averages   Averages
	Totals     Totals
}

// Simulate runs a closed loop of n clients with one shape and distinct prompts. The first warmup requests to finish are
// not measured, the next count are.
func Simulate(c Config, n int, shape Shape, warmup, count int) (Result, error) {
	sim, err := NewSimulation(c)
	if err != nil {
		return Result{}, err
	}
	var (
		res   Result
		began time.Duration
		base  Averages
		done  int
		sent  int32
	)
	next := func() *Request {
		sent++
		return &Request{Prompt: DistinctPrompt(sent, shape.Input), Output: shape.Output}
	}
	sim.Finished = func(r Record) {
		done++
		switch {
		case done < warmup:
		case done == warmup:
			began, base = sim.now, sim.area
		case done <= warmup+count:
			res.Records = append(res.Records, r)
		}
		sim.Submit(next(), sim.now)
	}
	for range n {
		sim.Submit(next(), 0)
	}
	for done < warmup+count {
		if _, err := sim.Step(); err != nil {
			return Result{}, err
		}
	}
	res.Window = sim.now - began
	w := res.Window.Seconds()
	res.Throughput = float64(len(res.Records)) / w
	res.Averages = Averages{
		Running: (sim.area.Running - base.Running) / w,
		Waiting: (sim.area.Waiting - base.Waiting) / w,
		KVUse:   (sim.area.KVUse - base.KVUse) / w,
	}
	res.Totals = sim.scheduler.Totals()
	return res, nil
}

// DistinctPrompt returns a prompt that shares no block with the prompt of another serial.
func DistinctPrompt(serial int32, length int) []int32 {
	p := make([]int32, length)
	for i := range p {
		p[i] = int32(i)
	}
	p[0] = -serial
	return p
}

type arrival struct {
	at      time.Duration
	serial  int // keeps simultaneous arrivals in order
	request *Request
}

type arrivals []arrival

func (a arrivals) Len() int { return len(a) }
func (a arrivals) Less(i, j int) bool {
	if a[i].at != a[j].at {
		return a[i].at < a[j].at
	}
	return a[i].serial < a[j].serial
}
func (a arrivals) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *arrivals) Push(x any)   { *a = append(*a, x.(arrival)) }
func (a *arrivals) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	*a = (*a)[:last]
	return x
}
