package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// hopHeaders are headers that proxies and stores of other makers rewrite on the
// way. A signature over them does not hold there: Google's servers change
// Accept-Encoding (aws-sdk-go-v2#1816, litestream#1386), others drop the SDK's
// own two (iceberg-go#1423). None of them says what is to be done.
var hopHeaders = []string{"Accept-Encoding", "Amz-Sdk-Invocation-Id", "Amz-Sdk-Request"}

// unsignHopHeaders keeps hopHeaders out of the signature and in the request.
func unsignHopHeaders(stack *middleware.Stack) error {
	kept := make(map[string][]string)
	hide := middleware.FinalizeMiddlewareFunc("HideHopHeaders", func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
		if request, ok := in.Request.(*smithyhttp.Request); ok {
			clear(kept)
			for _, name := range hopHeaders {
				if values := request.Header.Values(name); len(values) > 0 {
					kept[name] = values
					request.Header.Del(name)
				}
			}
		}
		return next.HandleFinalize(ctx, in)
	})
	show := middleware.FinalizeMiddlewareFunc("ShowHopHeaders", func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
		if request, ok := in.Request.(*smithyhttp.Request); ok {
			for name, values := range kept {
				request.Header[name] = values
			}
		}
		return next.HandleFinalize(ctx, in)
	})
	if err := stack.Finalize.Insert(hide, "Signing", middleware.Before); err != nil {
		return err
	}
	return stack.Finalize.Insert(show, "Signing", middleware.After)
}

// payloadHash hands the signer the body's SHA-256, which it would compute anew.
//
// A checksum that is set as a header has another merit: where the SDK computes
// it, over TLS it sends the body in chunks with the checksum behind them
// (aws-chunked), which some stores refuse or keep as content
// (loki#21791, velero#8660, tidb#65840).
func payloadHash(sum [sha256.Size]byte) func(*s3.Options) {
	know := middleware.InitializeMiddlewareFunc("KnowPayloadHash", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		return next.HandleInitialize(v4.SetPayloadHash(ctx, hex.EncodeToString(sum[:])), in)
	})
	return s3.WithAPIOptions(func(stack *middleware.Stack) error { return stack.Initialize.Add(know, middleware.Before) })
}

// Retry is a request that failed and is sent again after Wait.
type Retry struct {
	Err  error
	Wait time.Duration
	// Attempt counts the tries so far, of Attempts.
	Attempt, Attempts int
}

// Status is the store's HTTP status, 0 where it did not answer.
func (r Retry) Status() int { return statusOf(r.Err) }

// announcer is a retryer that says each wait when it begins: an absent server
// is waited for during minutes.
type announcer struct {
	aws.RetryerV2
	say func(Retry)
}

func (a announcer) RetryDelay(attempt int, problem error) (time.Duration, error) {
	wait, err := a.RetryerV2.RetryDelay(attempt, problem)
	if err == nil {
		a.say(Retry{Err: problem, Wait: wait, Attempt: attempt, Attempts: a.MaxAttempts()})
	}
	return wait, err
}
