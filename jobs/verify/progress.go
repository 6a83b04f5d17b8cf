package verify

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/dustin/go-humanize"

	"github.com/kubectl-inference/kubectl-inference/jobs/clock"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// counter counts what is written to it, for the progress.
type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}

// progress emits the state at intervals until the returned function is called,
// which emits the last one. A full run counts bytes, a fast one files.
func (r *run) progress(ctx context.Context) (stop func()) {
	report := func() {
		files := r.files.Load()
		done, total, unit := float64(files), float64(r.manifest.FileCount), "files"
		message := fmt.Sprintf("%d of %d files", files, r.manifest.FileCount)
		if r.plan.Mode == record.VerifyFull {
			done, total, unit = float64(r.read.Load()), float64(r.manifest.TotalSize), "bytes"
			message = fmt.Sprintf("read %s of %s, %s", humanize.IBytes(uint64(done)), humanize.IBytes(uint64(total)), message)
		}
		r.deps.Emit(record.Event{Time: r.deps.Now().UTC(), Level: record.Info, Name: record.EventProgress, Message: message, Done: &done, Total: &total, Unit: unit})
	}
	halt := clock.Every(ctx, r.deps.ProgressEvery, report)
	return func() {
		halt()
		report()
	}
}
