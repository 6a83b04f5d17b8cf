package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Cause says why the store did not do what was asked.
type Cause int

const (
	// Other is a cause without a name here; the text has the store's words.
	Other Cause = iota
	// NoBucket: the bucket does not exist.
	NoBucket
	// NoObject: the key does not exist.
	NoObject
	// Denied: the credentials lack the named action.
	Denied
	// BadCredentials: the keys are unknown, wrong or expired, or absent.
	BadCredentials
	// ClockSkew: this machine's clock differs too much from the store's.
	ClockSkew
	// Condition: a conditional write found its condition false.
	Condition
	// Conflict: a conditional write raced with another; it may be repeated.
	Conflict
	// Mismatch: the bytes that arrived do not match their checksum or size.
	Mismatch
	// Unreachable: no server answered.
	Unreachable
	// OtherRegion: the bucket is in another region than the one asked.
	OtherRegion
	// BadName: no bucket can have that name.
	BadName
	// Misconfigured: the settings cannot be used.
	Misconfigured
)

// Error is a refused or failed request.
type Error struct {
	// Act is what was tried, in words that go before the object's name.
	Act         string
	Bucket, Key string
	Cause       Cause
	// Action is the IAM action that the act needs.
	Action string
	// Status and Code are the store's, where it answered.
	Status int
	Code   string
	Err    error
}

func (e *Error) Error() string {
	location := "s3://" + e.Bucket
	if e.Key != "" {
		location += "/" + e.Key
	}
	return fmt.Sprintf("%s %s: %s", e.Act, location, e.reason())
}

func (e *Error) reason() string {
	switch e.Cause {
	case NoBucket:
		return "the bucket does not exist"
	case NoObject:
		return "the object does not exist"
	case Denied:
		return "access denied, it needs " + e.Action
	case BadCredentials:
		return "the store does not accept the credentials: " + e.detail()
	case ClockSkew:
		return "the clocks of this machine and the store differ too much"
	case Condition:
		return "the object exists already"
	case Conflict:
		return "another writer was at work at the same time"
	case Mismatch:
		return "the bytes that arrived are not the ones sent: " + e.detail()
	case OtherRegion:
		if region := e.region(); region != "" {
			return "the bucket is in region " + region
		}
		return "the bucket is in another region: " + e.detail()
	case Unreachable:
		return "the store cannot be reached: " + e.detail()
	}
	return e.detail()
}

// region is where the bucket is, by the store's own answer, or "".
func (e *Error) region() string {
	var response *smithyhttp.ResponseError
	if errors.As(e.Err, &response) && response.Response != nil {
		return response.Response.Header.Get("x-amz-bucket-region")
	}
	return ""
}

// detail is the innermost text: the SDK wraps it in the names of its layers.
func (e *Error) detail() string {
	var answer smithy.APIError
	if errors.As(e.Err, &answer) {
		return strings.TrimSuffix(fmt.Sprintf("%s (%s)", answer.ErrorMessage(), answer.ErrorCode()), "()")
	}
	var dial *net.OpError
	if errors.As(e.Err, &dial) {
		return dial.Error()
	}
	var send *smithyhttp.RequestSendError
	if errors.As(e.Err, &send) {
		return send.Err.Error()
	}
	if e.Err == nil {
		return http.StatusText(e.Status)
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// CauseOf returns the cause of the first Error in err's chain.
func CauseOf(err error) Cause {
	var failure *Error
	if errors.As(err, &failure) {
		return failure.Cause
	}
	return Other
}

// fail makes an Error of an SDK error.
func (b *Bucket) fail(act, key, action string, err error) error {
	if err == nil {
		return nil
	}
	failure := &Error{Act: act, Bucket: b.config.Bucket, Key: key, Action: action, Err: err}
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) {
		failure.Status = response.HTTPStatusCode()
	}
	var answer smithy.APIError
	if errors.As(err, &answer) {
		failure.Code = answer.ErrorCode()
	}
	failure.Cause = causeOf(failure)
	return failure
}

func causeOf(failure *Error) Cause {
	switch failure.Code {
	case "NoSuchBucket":
		return NoBucket
	case "InvalidBucketName":
		return BadName
	case "NoSuchKey", "NoSuchUpload":
		return NoObject
	case "InvalidAccessKeyId", "XAdminUserNotFound", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "InvalidClientTokenId":
		return BadCredentials
	case "RequestTimeTooSkewed", "RequestExpired":
		return ClockSkew
	case "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
		return OtherRegion
	case "PreconditionFailed":
		return Condition
	case "ConditionalRequestConflict", "OperationAborted":
		return Conflict
	case "BadDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch", "InvalidDigest":
		return Mismatch
	case "AccessDenied", "AllAccessDisabled", "AccountProblem":
		return Denied
	}
	switch failure.Status {
	case http.StatusMovedPermanently, http.StatusTemporaryRedirect:
		return OtherRegion
	case http.StatusForbidden:
		// HEAD has no body, so no code either.
		return Denied
	case http.StatusNotFound:
		if failure.Key == "" {
			return NoBucket
		}
		return NoObject
	case http.StatusPreconditionFailed:
		return Condition
	case http.StatusConflict:
		return Conflict
	case 0:
		return causeWithoutAnswer(failure.Err)
	}
	return Other
}

// causeWithoutAnswer reads an error that came before any response.
func causeWithoutAnswer(err error) Cause {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Other
	}
	if strings.Contains(err.Error(), "failed to refresh cached credentials") || strings.Contains(err.Error(), "failed to retrieve credentials") {
		return BadCredentials
	}
	var send *smithyhttp.RequestSendError
	var network net.Error
	if errors.As(err, &send) || errors.As(err, &network) {
		return Unreachable
	}
	return Other
}
