//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os/exec"
	"regexp"
	"runtime"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"github.com/kubectl-inference/kubectl-inference/jobs/store"
	"github.com/kubectl-inference/kubectl-inference/jobs/sync"
)

// sha256Rate prints the bytes that Go's SHA-256 takes in a second of one core's
// time. It counts the thread's CPU time: what else runs does not matter.
func sha256Rate() error {
	runtime.LockOSThread()
	block := make([]byte, store.DefaultPartSize)
	fill(block) // memory never written is one page of zeros, in the cache
	sum := sha256.New()
	const blocks = 64
	before := threadCPU()
	for range blocks {
		sum.Write(block)
	}
	fmt.Println(float64(blocks*len(block)) / (threadCPU() - before))
	return nil
}

func threadCPU() float64 {
	var rusage syscall.Rusage
	_ = syscall.Getrusage(1 /* RUSAGE_THREAD */, &rusage)
	return seconds(rusage.Utime) + seconds(rusage.Stime)
}

// opensslRate is the same of openssl, 0 where it is absent. It too counts CPU
// time, unless told otherwise.
func opensslRate(ctx context.Context) float64 {
	out, err := exec.CommandContext(ctx, "openssl", "speed", "-seconds", "1", "-bytes", "1048576", "-evp", "sha256").Output()
	match := regexp.MustCompile(`(?mi)^sha256\s+([0-9.]+)k`).FindSubmatch(out)
	if err != nil || match == nil {
		return 0
	}
	return number(string(match[1])) * 1000
}

// client speaks to the bench's S3 server. Over plain HTTP its payloads are not
// hashed, not even for the signature.
func client(url string) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: &url, Region: "us-east-1", UsePathStyle: true, Credentials: credentials.NewStaticCredentialsProvider(accessKey, secretKey, ""),
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}, s3.WithAPIOptions(v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware))
}

func makeBucket(ctx context.Context, url, name string) error {
	_, err := client(url).CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &name})
	return err
}

// put sends as many bytes as the model has, from one buffer, in parts of the
// size and the number at once that sync-model has, without any checksum: what
// the store takes at most.
func put(ctx context.Context, s settings) error {
	storage, each := client(s.url), s.bytes/int64(s.shards)
	block := make([]byte, store.PartSize(each))
	fill(block)
	began := time.Now()
	var files errgroup.Group
	parts := make(chan struct{}, sync.DefaultParallel)
	for n := range s.shards {
		files.Go(func() error {
			key := fmt.Sprintf("model/%d", n)
			upload, err := storage.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &s.bucket, Key: &key})
			if err != nil {
				return err
			}
			done := make([]types.CompletedPart, (each+int64(len(block))-1)/int64(len(block)))
			var group errgroup.Group
			for i := range done {
				parts <- struct{}{}
				group.Go(func() error {
					defer func() { <-parts }()
					body := block[:min(int64(len(block)), each-int64(i*len(block)))]
					number := aws.Int32(int32(i + 1))
					out, err := storage.UploadPart(ctx, &s3.UploadPartInput{
						Bucket: &s.bucket, Key: &key, UploadId: upload.UploadId, PartNumber: number, Body: bytes.NewReader(body),
					})
					if err == nil {
						done[i] = types.CompletedPart{ETag: out.ETag, PartNumber: number}
					}
					return err
				})
			}
			if err := group.Wait(); err != nil {
				return err
			}
			_, err = storage.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
				Bucket: &s.bucket, Key: &key, UploadId: upload.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: done},
			})
			return err
		})
	}
	if err := files.Wait(); err != nil {
		return err
	}
	fmt.Println(time.Since(began).Seconds())
	return nil
}

// fill writes bytes that do not repeat within a part.
func fill(block []byte) {
	state := uint64(88172645463325252)
	for i := range block {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		block[i] = byte(state)
	}
}
