//go:build linux

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/pprof"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/kubectl-inference/kubectl-inference/jobs/sync"
)

// inside carries requests to a sink in this process. Large bodies are dropped
// unread, so neither their checksum nor their sending costs anything.
type inside struct{ sink *sink }

func (i inside) RoundTrip(request *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	if request.Body == nil {
		request.Body = http.NoBody
	}
	i.sink.ServeHTTP(recorder, request)
	_ = request.Body.Close()
	response := recorder.Result()
	response.Request = request
	return response, nil
}

// null runs a sync of the model into nothing: only fetching it and the digests
// of the whole files are left. The sink pretends to speak TLS, for without it
// the SDK computes each part's digest for the signature.
func null(ctx context.Context, s settings) error {
	if s.profile != "" {
		file, err := os.Create(s.profile)
		if err != nil {
			return err
		}
		defer file.Close() //nolint:errcheck // pprof reports what it cannot write
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	storage := newSink()
	storage.unread = true
	plan := syncPlan(served{URL: s.url, Commit: s.commit}, "http://sink.invalid", s.bucket)
	began := time.Now()
	result, err := sync.Run(ctx, plan, sync.Deps{
		StoreTransport: inside{storage}, Credentials: credentials.NewStaticCredentialsProvider(accessKey, secretKey, ""), Version: "bench",
	})
	if err != nil {
		return err
	}
	if result.ManifestSHA256 == "" {
		return fmt.Errorf("sync to nothing: no manifest")
	}
	fmt.Println(time.Since(began).Seconds())
	return nil
}
