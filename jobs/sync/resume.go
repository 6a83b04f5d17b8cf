package sync

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/hub"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

// lastWords is how long a stopped run may take to save where it was.
const lastWords = 15 * time.Second

// partial is the upload of a large file, and what of it is done.
type partial struct {
	file   hub.File
	key    string
	upload *store.Upload
	check  *verifier
	ledger *ledger
	// stored are parts in the store that were not hashed here.
	stored map[int]store.Part
	// whole is the SHA-256 of the verified bytes, once all parts are sent.
	whole string
}

// begin starts the upload of a file, or takes up that of an earlier run.
func (r *run) begin(ctx context.Context, item *item) (*partial, error) {
	file, key := item.file, r.key(item.file.Path)
	if found, err := r.takeUp(ctx, file, key); found != nil || err != nil {
		return found, err
	}
	options := store.PutOptions{ContentType: contentType(file.Path), Metadata: metadataOf(file)}
	upload, err := r.bucket.CreateUpload(ctx, key, options)
	if err != nil {
		return nil, err
	}
	started := &partial{file: file, key: key, upload: upload, check: newVerifier(file), ledger: newLedger(r.deps.Now())}
	if r.resumes() {
		// At once: an upload that nobody knows of could only be swept. Without
		// ctx, for the upload is there even if the run is stopped just now.
		r.save(ctx, started)
	}
	return started, nil
}

// resumes says whether the store can vouch for the parts of an open upload.
func (r *run) resumes() bool { return r.can.RefusesWrongPart && r.can.ListsPartSHA256 }

// takeUp returns nil where there is nothing to go on with. What an unusable
// checkpoint names is given up.
func (r *run) takeUp(ctx context.Context, file hub.File, key string) (*partial, error) {
	where := r.checkpointKey(file.Path)
	if !r.resumes() || !r.checkpoints[where] {
		return nil, nil
	}
	found, err := r.readCheckpoint(ctx, where)
	if err != nil || found == nil {
		return nil, err
	}
	give := func() (*partial, error) {
		return nil, r.bucket.AbortUpload(ctx, store.OpenUpload{Key: key, ID: found.Upload})
	}
	if !found.fits(file, r.plan.KMSKey) {
		return give()
	}
	upload, parts, err := r.bucket.ResumeUpload(ctx, key, found.Upload)
	switch cause := store.CauseOf(err); {
	case cause == store.NoObject:
		return nil, nil
	case cause == store.Denied:
		r.warn(fmt.Sprintf("%s starts from its beginning: %v", file.Path, err))
		return give()
	case err != nil:
		return nil, err
	}
	again := &partial{file: file, key: key, upload: upload, check: newVerifier(file), ledger: newLedger(r.deps.Now()), stored: parts}
	if !again.trust(*found, parts) {
		again.check = newVerifier(file)
	}
	r.resumed(again, len(parts))
	return again, nil
}

// trust moves behind the parts of the checkpoint, if the store attests them.
func (p *partial) trust(from checkpoint, parts map[int]store.Part) bool {
	if from.Parts == 0 || !from.attested(parts) {
		return false
	}
	behind := state{sha256: from.SHA256, git: from.Git}
	if p.check.restore(behind, min(p.file.Size, int64(from.Parts)*from.PartSize)) != nil {
		return false
	}
	var sums [][]byte
	for number := 1; number <= from.Parts; number++ {
		p.upload.Adopt(parts[number])
		sums = append(sums, parts[number].SHA256)
	}
	p.ledger.begin(&behind, sums)
	return true
}

// resumed says what is saved.
func (r *run) resumed(p *partial, stored int) {
	r.report.resume(p.check.size)
	r.mu.Lock()
	r.result.ResumedBytes += p.check.size
	r.mu.Unlock()
	message := fmt.Sprintf("%s goes on at %s of %s, which an earlier run brought", p.file.Path, humanize.IBytes(uint64(p.check.size)), humanize.IBytes(uint64(p.file.Size)))
	switch {
	case p.check.size == 0 && stored == 0:
		message = fmt.Sprintf("%s starts from its beginning, in the upload that an earlier run opened", p.file.Path)
	case p.check.size == 0:
		message = fmt.Sprintf("%s is read from its beginning; of its parts %d are in the store already and are not sent again if they are right", p.file.Path, stored)
	}
	r.report.emit(record.Event{
		Name:    EventResume,
		Message: message,
		Fields:  map[string]any{"path": p.file.Path, "bytes": p.file.Size, "from": p.check.size, "parts": stored},
	})
}

// holds says whether the store has this part already, and adopts it then. Its
// bytes were read again, because no checkpoint covers them, and need not be
// sent again.
func (p *partial) holds(number int, body []byte) bool {
	part, found := p.stored[number]
	if !found || part.Size != int64(len(body)) {
		return false
	}
	if sum := sha256.Sum256(body); !bytes.Equal(part.SHA256, sum[:]) {
		return false
	}
	p.upload.Adopt(part)
	return true
}

// save writes the checkpoint. A failure costs time later and nothing else.
func (r *run) save(ctx context.Context, p *partial) int {
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	parts, sums, behind := p.ledger.position()
	point := checkpoint{
		Version: checkpointVersion, Path: p.file.Path, Size: p.file.Size, Digest: sourceDigest(p.file), PartSize: store.PartSize(p.file.Size),
		KMSKey: r.plan.KMSKey, Upload: p.upload.ID(), Parts: parts, PartsSHA256: sums,
	}
	if behind != nil {
		point.SHA256, point.Git = behind.sha256, behind.git
	}
	if p.whole != "" {
		point.Whole, point.Checksum = p.whole, p.upload.Composite(store.Parts(p.file.Size))
	}
	point.Sum = point.sum()
	data, err := json.Marshal(point)
	if err == nil {
		_, err = r.bucket.Put(clean, r.checkpointKey(p.file.Path), data, store.PutOptions{ContentType: "application/json"})
	}
	if err != nil {
		r.noCheckpoint.Do(func() {
			r.warn(fmt.Sprintf("no checkpoints: a file that is interrupted now would start from its beginning: %v", err))
		})
	}
	return parts
}

// saveIfDue writes a checkpoint now and then.
func (r *run) saveIfDue(ctx context.Context, p *partial) {
	if r.resumes() && p.ledger.due(r.deps.Now(), r.deps.CheckpointEvery) {
		p.ledger.done(r.save(ctx, p), r.deps.Now())
	}
}

// leave decides what becomes of an upload that did not end well. Where another
// run can go on with it, it stays with a checkpoint; its parts are given up
// where they are wrong or another try is of no use.
func (r *run) leave(ctx context.Context, p *partial, err error) {
	if r.resumes() && worthAnother(ctx, err, r.plan) {
		r.save(ctx, p)
		return
	}
	// The reason why it failed matters more than what this returns; what stays
	// behind is swept by the next run.
	_ = p.upload.Abort(ctx)
	r.forget(ctx, p.file.Path)
}

// forget deletes the checkpoint of a file that has no upload any more.
func (r *run) forget(ctx context.Context, path string) {
	if !r.resumes() {
		return
	}
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	if err := r.bucket.Delete(clean, r.checkpointKey(path)); err != nil && store.CauseOf(err) != store.Denied {
		r.warn(err.Error())
	}
}

// worthAnother says whether the parts of an upload are good and a later run may
// get further: the run was stopped, or a server was not well.
func worthAnother(ctx context.Context, err error, plan record.SyncPlan) bool {
	var wrong *mismatch
	var refused *store.Error
	switch {
	case errors.As(err, &wrong), isLost(err):
		return false
	case ctx.Err() != nil:
		// Stopped, or another file failed: abandon decides.
		return true
	case errors.As(err, &refused) && refused.Status >= 400 && refused.Status < 500 && refused.Status != http.StatusRequestTimeout && refused.Status != http.StatusTooManyRequests:
		return false
	}
	return !permanent(explain(err, plan, false))
}

// permanent says whether an error ends the Job, see manifests/jobs/job.yaml.
func permanent(err error) bool {
	switch failure.KindOf(err) {
	case failure.Usage, failure.Differs, failure.Denied, failure.NotFound:
		return true
	}
	return false
}

// lost is the error of an upload that the store no longer has as it was:
// another run completed, aborted or changed it. The file begins anew.
type lost struct{ err error }

func (l *lost) Error() string { return l.err.Error() }
func (l *lost) Unwrap() error { return l.err }

func isLost(err error) bool {
	var gone *lost
	return errors.As(err, &gone)
}

// asLost marks such an error.
func asLost(err error) error {
	var refused *store.Error
	if !errors.As(err, &refused) {
		return err
	}
	switch refused.Code {
	case "NoSuchUpload", "InvalidPart", "InvalidPartOrder":
		return &lost{err}
	}
	return err
}
