package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// readAttempts is how often a body that breaks off is taken up again
	// without any progress.
	readAttempts = 5
	readWait     = 500 * time.Millisecond
)

// Copy writes the size bytes of an object to a writer, which gets each byte
// once and in order: a body that breaks off is taken up where it ended.
func (b *Bucket) Copy(ctx context.Context, key string, size int64, to io.Writer) error {
	var offset int64
	for failures := 0; offset < size; {
		n, err := b.copyFrom(ctx, key, offset, size-offset, to)
		if offset += n; n > 0 {
			failures = 0
		}
		if err == nil {
			continue
		}
		if failures++; failures == readAttempts || CauseOf(err) != Other || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(readWait * time.Duration(failures)):
		}
	}
	return nil
}

func (b *Bucket) copyFrom(ctx context.Context, key string, offset, length int64, to io.Writer) (int64, error) {
	body, err := b.Get(ctx, key, offset, length)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	n, err := io.Copy(to, io.LimitReader(body, length))
	if err == nil && n < length {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		err = fmt.Errorf("read s3://%s/%s: %w", b.config.Bucket, key, err)
	}
	if ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	return n, err
}
