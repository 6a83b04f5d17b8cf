package store

import (
	"errors"
	"path"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// Explain makes of a store's error the one that a user meets: its kind and what
// mends it. Other errors pass as they are.
func Explain(err error) error {
	var problem *Error
	if !errors.As(err, &problem) {
		return err
	}
	kind, hint := failure.Failed, ""
	switch problem.Cause {
	case NoBucket:
		kind, hint = failure.NotFound, "check the name "+problem.Bucket+" and the endpoint; sync-model writes to a bucket that is there already"
	case NoObject:
		kind = failure.NotFound
	case Denied:
		kind, hint = failure.Denied, "allow "+problem.Action+" for these credentials on "+problem.resource()
	case BadCredentials:
		kind, hint = failure.Denied, "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (in a Job those of --s3-secret), or the role of the ServiceAccount"
	case ClockSkew:
		kind, hint = failure.Usage, "set the clock of the machine that this runs on, in a Job that of its node"
	case OtherRegion:
		kind, hint = failure.Usage, "give --s3-region"
		if region := problem.region(); region != "" {
			hint += " " + region
		}
	case BadName:
		kind, hint = failure.Usage, "a bucket's name has 3 to 63 small letters, digits, hyphens and dots, and begins and ends with a letter or digit"
	case Misconfigured:
		kind, hint = failure.Usage, "check the AWS settings in the environment"
	case Unreachable:
		kind, hint = failure.Unreachable, "check the S3 endpoint, DNS, and HTTPS_PROXY and NO_PROXY"
	case Mismatch:
		hint = "the network between this program and the store damages data; run it again"
	}
	return failure.New(kind, hint, "%w", problem)
}

// resource is what a policy has to name for the act.
func (e *Error) resource() string {
	if e.Key == "" {
		return "arn:aws:s3:::" + e.Bucket
	}
	return "arn:aws:s3:::" + e.Bucket + "/" + path.Dir(e.Key) + "/*"
}
