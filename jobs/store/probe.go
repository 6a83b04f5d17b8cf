package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"path"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// ProbePrefix begins the keys of the objects that Probe writes and deletes.
const ProbePrefix = "_PROBE-"

// Probe finds out, before the first byte of a model, whether the store can be
// written and what it attests: it writes a small object below prefix and
// deletes it. unique makes its key, so that parallel runs do not meet.
func (b *Bucket) Probe(ctx context.Context, prefix, unique string) (record.StoreCapabilities, error) {
	var can record.StoreCapabilities
	key := path.Join(prefix, ProbePrefix+unique)
	if _, err := b.Head(ctx, key); CauseOf(err) != NoObject {
		if err == nil {
			err = fmt.Errorf("probe s3://%s/%s: the key exists already", b.config.Bucket, key)
		}
		return can, err
	}
	body := []byte("kubectl-inference looks what this store can do; this object may be deleted\n")
	wrong := sha256.Sum256([]byte("other bytes"))
	_, err := b.Put(ctx, key, body, PutOptions{SHA256: hex.EncodeToString(wrong[:])})
	switch {
	case err == nil:
	case refused(err):
		can.RefusesWrongSHA256 = true
	default:
		return can, err
	}
	if err := b.Delete(ctx, key); err != nil && CauseOf(err) != Denied {
		return can, err
	}
	sum := sha256.Sum256(body)
	if _, err := b.Put(ctx, key, body, PutOptions{SHA256: hex.EncodeToString(sum[:])}); err != nil {
		return can, err
	}
	_, err = b.Put(ctx, key, body, PutOptions{IfAbsent: true})
	switch cause := CauseOf(err); {
	case err == nil:
	case cause == Condition, cause == Conflict:
		can.ConditionalPut = true
	case statusOf(err) != http.StatusNotImplemented:
		return can, err
	}
	object, err := b.Head(ctx, key)
	if err != nil {
		return can, err
	}
	can.ReturnsSHA256 = object.SHA256() == hex.EncodeToString(sum[:])
	// Without s3:DeleteObject a few bytes stay behind, which harms nothing.
	if err := b.Delete(ctx, key); err != nil && CauseOf(err) != Denied {
		return can, err
	}
	return can, nil
}

// refused says whether the store turned the wrong checksum down. The code
// differs between servers; a refused request of status 400 it is in all.
func refused(err error) bool {
	return CauseOf(err) == Mismatch || statusOf(err) == http.StatusBadRequest
}

func statusOf(err error) int {
	var failure *Error
	if errors.As(err, &failure) {
		return failure.Status
	}
	return 0
}
