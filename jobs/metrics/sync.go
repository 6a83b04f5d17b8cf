// Package metrics shows a Job's work to Prometheus. What it counts it takes from
// the Job's own events, so that the log, the bar and the metrics agree.
package metrics

import (
	"encoding/json"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// The values of the label "result" of the files that a sync counts.
const (
	Uploaded = "uploaded"
	Present  = "present"
	Skipped  = "skipped"
)

// Sync holds the metrics of one sync. It hears of events from any goroutine.
type Sync struct {
	registry *prometheus.Registry

	bytes    *prometheus.CounterVec
	files    *prometheus.CounterVec
	retries  *prometheus.CounterVec
	limited  prometheus.Counter
	wrong    prometheus.Counter
	planned  *prometheus.GaugeVec
	duration prometheus.Gauge
	success  prometheus.Gauge

	mu sync.Mutex
	// seen is how far the totals of the events were counted.
	seen map[string]float64
}

// NewSync makes the metrics in a registry of their own.
func NewSync() *Sync {
	const namespace, subsystem = "sync", "model"
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}
	}
	gauge := func(name, help string) prometheus.GaugeOpts {
		return prometheus.GaugeOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}
	}
	s := &Sync{
		registry: prometheus.NewRegistry(),
		bytes:    prometheus.NewCounterVec(counter("bytes_total", "Bytes transferred: downloaded from the Hub (repeats included), verified on their way to the store."), []string{"direction"}),
		files:    prometheus.NewCounterVec(counter("files_total", "Files by what became of them."), []string{"result"}),
		retries:  prometheus.NewCounterVec(counter("retries_total", "Repeated requests by peer and by the status that they were answered with, 0 where none was."), []string{"peer", "code"}),
		limited:  prometheus.NewCounter(counter("ratelimit_wait_seconds_total", "Time that the Hub's rate limits made the sync wait.")),
		wrong:    prometheus.NewCounter(counter("digest_mismatch_total", "Files whose bytes were not the Hub's, and that were read again or given up.")),
		planned:  prometheus.NewGaugeVec(gauge("planned_bytes", "Bytes of the plan, by whether they were there before."), []string{"state"}),
		duration: prometheus.NewGauge(gauge("duration_seconds", "How long the sync has taken, set when it ends.")),
		success:  prometheus.NewGauge(gauge("last_success_timestamp_seconds", "When the prefix was complete, 0 if it is not.")),
		seen:     make(map[string]float64),
	}
	s.registry.MustRegister(s.bytes, s.files, s.retries, s.limited, s.wrong, s.planned, s.duration, s.success)
	for _, result := range []string{Uploaded, Present, Skipped} {
		s.files.WithLabelValues(result)
	}
	for _, direction := range []string{"downloaded", "verified"} {
		s.bytes.WithLabelValues(direction)
	}
	return s
}

// Event counts what one event tells.
func (s *Sync) Event(event record.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch event.Name {
	case record.EventPlan:
		s.plan(event)
	case record.EventProgress:
		if event.Done != nil && event.Unit == "bytes" {
			s.upTo("verified", s.bytes.WithLabelValues("verified"), *event.Done)
		}
		s.upTo("downloaded", s.bytes.WithLabelValues("downloaded"), number(event.Fields["downloaded_bytes"]))
		s.upTo("limited", s.limited, number(event.Fields["rate_limit_seconds"]))
	case record.EventFile:
		s.files.WithLabelValues(Uploaded).Inc()
	case record.EventRetry:
		s.retry(event)
	case record.EventDone:
		s.done(event)
	}
}

func (s *Sync) plan(event record.Event) {
	there, upload := count(event.Fields["present"]), count(event.Fields["upload"])
	s.upTo("present", s.files.WithLabelValues(Present), float64(there.Files))
	s.upTo("skipped", s.files.WithLabelValues(Skipped), float64(count(event.Fields["skipped"]).Files))
	s.planned.WithLabelValues("present").Set(float64(there.Bytes))
	s.planned.WithLabelValues("upload").Set(float64(upload.Bytes))
}

func (s *Sync) retry(event record.Event) {
	if wrong, _ := event.Fields["digest_mismatch"].(bool); wrong {
		s.wrong.Inc()
		return
	}
	peer, _ := event.Fields["peer"].(string)
	if peer == "" {
		peer = "hub"
	}
	s.retries.WithLabelValues(peer, strconv.Itoa(int(number(event.Fields["status"])))).Inc()
}

func (s *Sync) done(event record.Event) {
	var result record.SyncResult
	if json.Unmarshal(event.Result, &result) != nil {
		return
	}
	s.upTo("downloaded", s.bytes.WithLabelValues("downloaded"), float64(result.DownloadedBytes))
	s.upTo("limited", s.limited, result.RateLimitSeconds)
	s.duration.Set(result.DurationSeconds)
	if result.ManifestSHA256 != "" {
		s.success.Set(float64(event.Time.UnixNano()) / 1e9)
	}
}

// upTo counts a counter up to a total. A file that is read again takes its part
// of the total back; a counter never falls.
func (s *Sync) upTo(name string, counter prometheus.Counter, total float64) {
	if more := total - s.seen[name]; more > 0 {
		counter.Add(more)
		s.seen[name] = total
	}
}

// number reads a field as the Job made it, or as JSON brought it.
func number(value any) float64 {
	switch value := value.(type) {
	case float64:
		return value
	case int64:
		return float64(value)
	case int:
		return float64(value)
	}
	return 0
}

func count(value any) record.FileCount {
	found, _ := value.(record.FileCount)
	return found
}
