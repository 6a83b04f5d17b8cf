package jobrun

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// workersOf returns the number of pods that share a Job's work; a Job without
// indexes has one.
func workersOf(job *batchv1.Job) int {
	if mode := job.Spec.CompletionMode; mode == nil || *mode != batchv1.IndexedCompletion || job.Spec.Completions == nil {
		return 1
	}
	return int(*job.Spec.Completions)
}

// ofWorker leaves the pods of one worker.
func ofWorker(pods []corev1.Pod, index string) []corev1.Pod {
	var own []corev1.Pod
	for _, pod := range pods {
		if pod.Annotations[batchv1.JobCompletionIndexAnnotation] == index {
			own = append(own, pod)
		}
	}
	return own
}

// followWorkers follows each worker of an Indexed Job and shows their progress
// as one. The first worker's last event is the Job's; of a Job that failed it
// is that of the worker that failed by itself.
func (j Jobs) followWorkers(ctx context.Context, job *batchv1.Job, observer Observer) (record.Event, error) {
	workers := workersOf(job)
	// Each asks for itself; together they are to ask little more than one.
	j.Poll *= time.Duration(1 + workers/4)
	merge := &merge{observer: observer, parts: make([]record.Event, workers), told: make(map[string]bool)}
	events, errs := make([]record.Event, workers), make([]error, workers)
	var group sync.WaitGroup
	for index := range workers {
		group.Go(func() {
			f := &follower{Jobs: j, job: job, observer: part{merge, index}, index: fmt.Sprint(index)}
			events[index], errs[index] = f.run(ctx)
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return record.Event{}, ctx.Err()
	}
	for index, err := range errs {
		own := failure.Kind(events[index].ExitCode)
		if err != nil && events[index].Name == record.EventFailed && own != failure.Interrupted {
			return events[index], err
		}
	}
	return events[0], errs[0]
}

// merge makes one story of those that the workers tell.
type merge struct {
	mu       sync.Mutex
	observer Observer
	parts    []record.Event
	planned  float64
	told     map[string]bool
}

// part is the observer of one worker.
type part struct {
	merge *merge
	index int
}

// Event implements Observer.
func (p part) Event(event record.Event) {
	m := p.merge
	m.mu.Lock()
	defer m.mu.Unlock()
	switch event.Name {
	case record.EventProgress:
		m.parts[p.index] = event
		m.observer.Event(m.progress(event.Time))
	case record.EventPlan:
		if upload, ok := event.Fields["upload"].(map[string]any); ok {
			m.planned = max(m.planned, field(upload, "bytes"))
		}
		m.once(event.Message, func() { m.observer.Event(event) })
	case record.EventDone, record.EventFailed:
		// One worker's end is not the Job's.
	default:
		m.once(event.Message, func() { m.observer.Event(event) })
	}
}

// Waiting implements Observer.
func (p part) Waiting(reason string) {
	p.merge.mu.Lock()
	defer p.merge.mu.Unlock()
	p.merge.observer.Waiting(reason)
}

// once shows what all workers say in the same words one time.
func (m *merge) once(message string, show func()) {
	if !m.told[message] {
		m.told[message] = true
		show()
	}
}

// progress adds up what the workers have last said.
func (m *merge) progress(now time.Time) record.Event {
	var done, total, rate, filesDone, files float64
	foretold := true
	for _, event := range m.parts {
		if event.Done != nil && event.Total != nil {
			done, total = done+*event.Done, total+*event.Total
		}
		// The sum foretells an end when each part does, or has ended.
		_, known := event.Fields["eta_seconds"]
		foretold = foretold && event.Done != nil && event.Total != nil && (known || *event.Done >= *event.Total)
		rate += field(event.Fields, "bytes_per_second")
		filesDone += field(event.Fields, "files_done")
		files += field(event.Fields, "files")
	}
	// A worker that has not spoken yet has work too.
	total = max(total, m.planned)
	message := fmt.Sprintf("%s of %s, %.0f files, %d workers", humanize.IBytes(uint64(max(0, done))), humanize.IBytes(uint64(total)), filesDone, len(m.parts))
	if left := total - done; rate > 0 && left > 0 {
		message += fmt.Sprintf(", %s/s", humanize.IBytes(uint64(rate)))
		if foretold {
			message += fmt.Sprintf(", %s left", time.Duration(left/rate*float64(time.Second)).Round(time.Second))
		}
	}
	return record.Event{
		Time: now, Level: record.Info, Name: record.EventProgress, Message: message, Done: &done, Total: &total, Unit: "bytes",
		Fields: map[string]any{"bytes_per_second": rate, "files_done": filesDone, "files": files},
	}
}

func field(fields map[string]any, name string) float64 {
	number, _ := fields[name].(float64)
	return number
}
