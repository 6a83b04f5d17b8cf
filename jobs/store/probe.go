package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"path"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// Probe finds out, before the first byte of a model, whether the store can be
// written and what it attests: it writes a small object and an upload below
// prefix and deletes them. unique makes its key, so that parallel runs do not meet.
func (b *Bucket) Probe(ctx context.Context, prefix, unique string) (record.StoreCapabilities, error) {
	var can record.StoreCapabilities
	key := path.Join(prefix, record.ProbePrefix+unique)
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
	if err := b.probeUpload(ctx, key, body, &can); err != nil {
		return can, err
	}
	// Without s3:DeleteObject a few bytes stay behind, which harms nothing.
	if err := b.Delete(ctx, key); err != nil && CauseOf(err) != Denied {
		return can, err
	}
	return can, nil
}

// probeUpload tries the same with an upload of one part, which it gives up: a
// store can check whole objects and not parts, as some do.
func (b *Bucket) probeUpload(ctx context.Context, key string, body []byte, can *record.StoreCapabilities) (err error) {
	upload, err := b.CreateUpload(ctx, key, PutOptions{})
	if err != nil {
		return err
	}
	defer func() {
		if aborted := upload.Abort(ctx); err == nil && CauseOf(aborted) != Denied {
			err = aborted
		}
	}()
	wrong := sha256.Sum256([]byte("other bytes"))
	_, err = b.client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: &b.config.Bucket, Key: &key, UploadId: &upload.id, PartNumber: aws.Int32(1), Body: bytes.NewReader(body),
		ChecksumSHA256: aws.String(base64.StdEncoding.EncodeToString(wrong[:])),
	})
	switch err = b.fail("write part 1 of", key, b.writeActions(), err); {
	case err == nil:
	case refused(err):
		can.RefusesWrongPart = true
	default:
		return err
	}
	if err := upload.Part(ctx, 1, body); err != nil {
		return err
	}
	_, parts, err := b.ResumeUpload(ctx, key, upload.id)
	if CauseOf(err) == Denied || statusOf(err) == http.StatusNotImplemented {
		// It can be done without, at a price that the caller states.
		return nil
	}
	sum := sha256.Sum256(body)
	can.ListsPartSHA256 = err == nil && bytes.Equal(parts[1].SHA256, sum[:])
	return err
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
