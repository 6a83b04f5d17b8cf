//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubectl-inference/kubectl-inference/jobs/hub"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
	"github.com/kubectl-inference/kubectl-inference/jobs/sync"
)

// fetch is the reading half alone: ranges of all files with sync-model's own
// client, hashed in order, and no sink. What it cannot reach no sync can.
func fetch(ctx context.Context, s settings) error {
	client, err := hub.New(hub.Options{Endpoint: s.url})
	if err != nil {
		return err
	}
	began := time.Now()
	listed, err := client.List(ctx, model, s.commit)
	if err != nil {
		return err
	}
	buffers := make(chan []byte, sync.DefaultMemory/store.DefaultPartSize)
	for range cap(buffers) {
		buffers <- make([]byte, store.DefaultPartSize)
	}
	workers := make(chan struct{}, sync.DefaultParallel)
	var files errgroup.Group
	for _, file := range listed {
		if file.SHA256 == "" {
			continue
		}
		files.Go(func() error {
			source, sum := client.Open(model, s.commit, file), sha256.New()
			var group errgroup.Group
			turn := make(chan struct{})
			close(turn)
			for offset := int64(0); offset < file.Size; offset += store.DefaultPartSize {
				buffer := <-buffers
				mine, next := turn, make(chan struct{})
				turn = next
				group.Go(func() error {
					defer func() { buffers <- buffer }()
					workers <- struct{}{}
					part := buffer[:min(store.DefaultPartSize, file.Size-offset)]
					err := source.Read(ctx, offset, part)
					<-workers
					<-mine
					sum.Write(part)
					close(next)
					return err
				})
			}
			if err := group.Wait(); err != nil {
				return err
			}
			if got := hex.EncodeToString(sum.Sum(nil)); got != file.SHA256 {
				return fmt.Errorf("%s: digest %s", file.Path, got)
			}
			return nil
		})
	}
	if err := files.Wait(); err != nil {
		return err
	}
	fmt.Println(time.Since(began).Seconds())
	return nil
}
