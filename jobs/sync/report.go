package sync

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/kubectl-inference/kubectl-inference/jobs/clock"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// The events of a sync, beside those that all jobs share.
const (
	EventPlan  = record.EventPlan
	EventFile  = record.EventFile
	EventRetry = record.EventRetry
	// EventWaiting: the first worker has done its part and waits for the rest.
	EventWaiting = "waiting"
	// EventResume tells of a file that goes on where an earlier run stopped.
	EventResume = "resume"
)

// reporter turns what happens into events.
type reporter struct {
	mu   sync.Mutex
	send func(record.Event)
	now  func() time.Time
	// bytes counts what reached the hash; a file that is read again takes its
	// part back.
	bytes atomic.Int64
	files atomic.Int64
	// downloaded is what the Hub has sent, repeats included.
	downloaded func() int64
	// earlier is the part of bytes that an earlier run brought.
	earlier atomic.Int64
	// until is when the waits end that were told, by what is waited for.
	until map[string]time.Time
}

func newReporter(send func(record.Event), now func() time.Time) *reporter {
	return &reporter{send: send, now: now, downloaded: func() int64 { return 0 }}
}

func (p *reporter) emit(event record.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	event.Time = p.now().UTC()
	if event.Level == "" {
		event.Level = record.Info
	}
	p.send(event)
}

func (p *reporter) transferred(bytes int64) { p.bytes.Add(bytes) }

func (p *reporter) file(item *item) {
	p.files.Add(1)
	p.emit(record.Event{
		Name: EventFile, Message: fmt.Sprintf("uploaded %s (%s)", item.file.Path, humanize.IBytes(uint64(item.file.Size))),
		Fields: map[string]any{"path": item.file.Path, "bytes": item.file.Size, "sha256": item.done.SHA256},
	})
}

// again says that a file is read anew.
func (p *reporter) again(path string, why error, attempt int) {
	var wrong *mismatch
	p.emit(record.Event{
		Level: record.Warning, Name: EventRetry, Message: fmt.Sprintf("%v, reading it again", why),
		Fields: map[string]any{"what": path, "attempt": attempt, "digest_mismatch": errors.As(why, &wrong)},
	})
}

// resume counts bytes that an earlier run brought.
func (p *reporter) resume(bytes int64) {
	p.bytes.Add(bytes)
	p.earlier.Add(bytes)
}

// start emits progress at intervals, until the returned function is called,
// which emits the last state.
func (p *reporter) start(ctx context.Context, every time.Duration, counters func() (files int, bytes int64, limited time.Duration)) (stop func()) {
	files, total, _ := counters()
	var pace pace
	pace.add(p.now(), float64(p.bytes.Load()-p.earlier.Load()))
	report := func() {
		done, all := float64(p.bytes.Load()), float64(total)
		_, _, limited := counters()
		fields := map[string]any{"files_done": p.files.Load(), "files": files, "rate_limit_seconds": limited.Seconds(), "downloaded_bytes": p.downloaded()}
		message := fmt.Sprintf("%s of %s, %d of %d files", humanize.IBytes(uint64(max(0, done))), humanize.IBytes(uint64(total)), p.files.Load(), files)
		pace.add(p.now(), done-float64(p.earlier.Load()))
		rate, foretells := pace.rate()
		fields["bytes_per_second"] = rate
		if done > 0 {
			message += fmt.Sprintf(", %s/s", humanize.IBytes(uint64(rate)))
		}
		if left := all - done; foretells && left > 0 {
			eta := left / rate
			fields["eta_seconds"] = eta
			message += fmt.Sprintf(", %s left", time.Duration(eta*float64(time.Second)).Round(time.Second))
		}
		p.emit(record.Event{Name: record.EventProgress, Message: message, Done: &done, Total: &all, Unit: "bytes", Fields: fields})
	}
	halt := clock.Every(ctx, every, report)
	return func() {
		halt()
		if files > 0 {
			report()
		}
	}
}

// counters is the work of this worker: files and bytes to upload.
func (r *run) counters() (files int, bytes int64, limited time.Duration) {
	return r.work.Files, r.work.Bytes, r.hub.Limited()
}

// announce counts the plan into the result and says it.
func (r *run) announce() {
	result := &r.result
	result.Files, result.Total, result.Present, result.Uploaded, result.Skipped, result.Removed = []record.SyncFilePlan{}, record.FileCount{}, record.FileCount{}, record.FileCount{}, record.FileCount{}, record.FileCount{}
	for _, item := range r.files {
		action := record.SyncFilePlan{Path: item.file.Path, Size: item.file.Size, Action: record.ActionUpload, Reason: item.reason}
		r.result.Total.Add(item.file.Size)
		if item.present {
			action.Action, action.Reason = record.ActionPresent, "the digests agree"
			r.result.Present.Add(item.file.Size)
		} else {
			r.result.Uploaded.Add(item.file.Size)
		}
		r.result.Files = append(r.result.Files, action)
	}
	for _, file := range r.skipped {
		r.result.Skipped.Add(file.Size)
		r.result.Files = append(r.result.Files, record.SyncFilePlan{Path: file.Path, Size: file.Size, Action: record.ActionSkip, Reason: file.Reason})
	}
	for _, name := range r.formerPaths(r.left) {
		if size, there := r.sizes[r.key(name)]; there {
			r.result.Removed.Add(size)
			r.result.Files = append(r.result.Files, record.SyncFilePlan{Path: name, Size: size, Action: record.ActionRemove, Reason: "of the former delivery, and not of this one"})
		}
	}
	count := func(c record.FileCount) string {
		return fmt.Sprintf("%d (%s)", c.Files, humanize.IBytes(uint64(c.Bytes)))
	}
	r.report.emit(record.Event{
		Name: EventPlan,
		Message: fmt.Sprintf("%s at %s to %s: files %s, there already %s, to upload %s", r.repo, r.commit, r.location(),
			count(r.result.Total), count(r.result.Present), count(r.result.Uploaded)),
		Fields: map[string]any{
			"repo": r.repo, "revision": r.commit, "requested_revision": r.plan.Revision, "location": r.location(), "total": r.result.Total,
			"present": r.result.Present, "upload": r.result.Uploaded, "skipped": r.result.Skipped,
		},
	})
}

// recount moves a file that was there, and then was not, to those uploaded.
func (r *run) recount(item *item) {
	for i := range r.result.Files {
		if file := &r.result.Files[i]; file.Path == item.file.Path && file.Action == record.ActionPresent {
			file.Action, file.Reason = record.ActionUpload, item.reason
			r.result.Present.Files, r.result.Present.Bytes = r.result.Present.Files-1, r.result.Present.Bytes-file.Size
			r.result.Uploaded.Add(file.Size)
		}
	}
}

// finish fills the rest of the result. manifest is nil after a dry run.
func (r *run) finish(manifest *record.Manifest) {
	result := &r.result
	result.TypeMeta = record.Meta(record.KindSyncResult)
	result.Repo, result.RequestedRevision, result.Revision = r.repo, r.plan.Revision, r.commit
	result.Location, result.DryRun = r.location(), r.plan.DryRun
	result.DownloadedBytes, result.Retries = r.hub.Bytes(), r.hub.Retries()
	result.RateLimitSeconds = r.hub.Limited().Seconds()
	result.DurationSeconds = r.deps.Now().Sub(r.started).Seconds()
	result.Warnings = orEmpty(result.Warnings)
	if manifest == nil || r.plan.DryRun {
		result.ManifestSHA256 = ""
		return
	}
	result.RootDigest = manifest.RootDigest
}
