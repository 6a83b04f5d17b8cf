//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/openai"
)

var body = openai.Request{API: record.APICompletions, Model: "m", Tokens: make([]uint32, 1024), OutputTokens: chunks, Stream: true}.Body()

// each keeps so many streams in flight until the time is over.
func each(streams int, length time.Duration, one func() error) error {
	end := time.Now().Add(length)
	var wait sync.WaitGroup
	failed := make(chan error, streams)
	for range streams {
		wait.Go(func() {
			for time.Now().Before(end) {
				if err := one(); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wait.Wait()
	close(failed)
	return <-failed
}

// ours is the client of bench.
func ours(url string, streams int, length time.Duration) (seen, error) {
	var t tally
	client := &openai.Client{HTTP: openai.NewHTTP(false), URL: url, Timeout: time.Minute, Idle: time.Minute, Now: time.Now}
	err := each(streams, length, func() error {
		reply := client.Do(context.Background(), record.APICompletions, body, nil)
		if reply.Class != "" {
			return fmt.Errorf("%s: %s", reply.Class, reply.Message)
		}
		t.add(reply.FirstToken.Sub(reply.Sent), reply.Gaps)
		return nil
	})
	return t.seen(), err
}

// bare reads the same streams with net/http and looks at nothing: the floor. A
// read stands for a chunk.
func bare(url string, streams int, length time.Duration) (seen, error) {
	var t tally
	client := openai.NewHTTP(false)
	err := each(streams, length, func() error {
		start := time.Now()
		response, err := client.Post(url+"/v1/completions", "application/json", bytes.NewReader(body))
		if err != nil {
			return err
		}
		defer response.Body.Close() //nolint:errcheck // it was only read
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", response.StatusCode)
		}
		var first, before time.Time
		gaps := make([]time.Duration, 0, chunks)
		buffer := make([]byte, 4096)
		for {
			n, err := response.Body.Read(buffer)
			now := time.Now()
			switch {
			case n > 0 && first.IsZero():
				first, before = now, now
			case n > 0:
				gaps, before = append(gaps, now.Sub(before)), now
			}
			if err != nil {
				t.add(first.Sub(start), gaps)
				return nil
			}
		}
	})
	return t.seen(), err
}

func report(s seen, err error) error {
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(s)
}
