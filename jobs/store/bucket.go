package store

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Config says which bucket, and how to reach it. Credentials and whatever is
// empty come from the environment, as for every AWS program: keys, profiles,
// IRSA and EKS Pod Identity.
type Config struct {
	Bucket string
	// Endpoint is the base URL of a server that is not AWS.
	Endpoint string
	Region   string
	// KMSKey encrypts new objects with this key (aws:kms).
	KMSKey string
	// Credentials replaces the environment's; they are not cached here, so
	// they may expire and renew.
	Credentials aws.CredentialsProvider
	// Transport carries the requests; nil is the SDK's own.
	Transport http.RoundTripper
	// Attempts is how often a request is tried; 0 is 8.
	Attempts int
	// OnRetry hears of each wait before a request is sent again.
	OnRetry func(Retry)
}

// Bucket is one bucket, reached once. It may be used by many goroutines.
type Bucket struct {
	client *s3.Client
	config Config
	custom bool
}

// answerTimeout is how long a store may take for the head of its answer.
const answerTimeout = 2 * time.Minute

// Open connects to a bucket and finds out its region.
func Open(ctx context.Context, settings Config) (*Bucket, error) {
	if settings.Attempts == 0 {
		settings.Attempts = 8
	}
	var load []func(*config.LoadOptions) error
	if settings.Region != "" {
		load = append(load, config.WithRegion(settings.Region))
	}
	if settings.Credentials != nil {
		load = append(load, config.WithCredentialsProvider(settings.Credentials))
	}
	load = append(load, config.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConnsPerHost = 64
		// A store that takes a request and never answers is tried again. Putting
		// a large object together may take some servers a minute.
		t.ResponseHeaderTimeout = answerTimeout
	})))
	shared, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, &Error{Act: "read the AWS settings of", Bucket: settings.Bucket, Cause: Misconfigured, Err: err}
	}
	if settings.Transport != nil {
		// After loading: AWS_CA_BUNDLE is for the SDK's own transport only.
		shared.HTTPClient = &http.Client{Transport: settings.Transport}
	}
	bucket := &Bucket{config: settings}
	bucket.connect(shared)
	region, err := bucket.region(ctx)
	if err != nil {
		return nil, err
	}
	if region != "" && region != bucket.client.Options().Region {
		shared.Region = region
		bucket.connect(shared)
		if _, err := bucket.region(ctx); err != nil {
			return nil, err
		}
	}
	return bucket, nil
}

// connect makes the client. A custom endpoint, by whichever way it is set, gets
// path-style addresses and none of the SDK's own CRC checksums, which many
// servers refuse or store as content; the SHA-256 that we send is header-only.
func (b *Bucket) connect(shared aws.Config) {
	b.client = s3.NewFromConfig(shared, func(o *s3.Options) {
		if b.config.Endpoint != "" {
			o.BaseEndpoint = aws.String(b.config.Endpoint)
		}
		o.Retryer = announcer{say: b.retried, RetryerV2: retry.NewStandard(func(r *retry.StandardOptions) {
			r.MaxAttempts = b.config.Attempts
			// The SDK's quota is one for all requests: many parts that wait for
			// the same busy server would use it up and fail before their time.
			r.RateLimiter = ratelimit.None
			// The SDK gives up on a request that raced with another writer's. S3
			// documents that it is to be sent again; other stores have other
			// codes for it and the same status.
			r.Retryables = append(r.Retryables, retry.RetryableHTTPStatusCode{Codes: map[int]struct{}{http.StatusConflict: {}}})
		})}
		b.custom = o.BaseEndpoint != nil
		if b.custom {
			o.UsePathStyle = true
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
			o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
			o.APIOptions = append(o.APIOptions, unsignHopHeaders)
		}
		if o.Region == "" {
			o.Region = "us-east-1"
		}
	})
}

// region asks where the bucket is. AWS says so even when it refuses.
func (b *Bucket) region(ctx context.Context) (string, error) {
	out, err := b.client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &b.config.Bucket})
	if err == nil {
		return aws.ToString(out.BucketRegion), nil
	}
	var response *smithyhttp.ResponseError
	if !b.custom && errors.As(err, &response) && response.Response != nil {
		if region := response.Response.Header.Get("x-amz-bucket-region"); region != "" && region != b.client.Options().Region {
			return region, nil
		}
	}
	if errors.As(err, &response) && response.HTTPStatusCode() > 0 && response.HTTPStatusCode() < http.StatusInternalServerError {
		// The answer to HEAD has no body, and so no word on why. Wrong keys, a
		// missing permission and a missing bucket need different help; a
		// listing tells them apart.
		_, err = b.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &b.config.Bucket, MaxKeys: aws.Int32(1)})
	}
	return "", b.fail("open", "", "s3:ListBucket", err)
}

// retried passes a retry on, with what the store said as an Error of ours.
func (b *Bucket) retried(retry Retry) {
	if b.config.OnRetry != nil {
		retry.Err = b.fail("reach", "", "", retry.Err)
		b.config.OnRetry(retry)
	}
}

// Name is the bucket's name.
func (b *Bucket) Name() string { return b.config.Bucket }
