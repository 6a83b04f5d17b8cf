package runner

import (
	"context"
	"encoding/json"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/verify"
)

func runVerify(ctx context.Context, process Process, data []byte, emit func(record.Event)) (any, error) {
	return verifyWith(ctx, process.Getenv, data, verify.Deps{Emit: emit}, false)
}

// LocalVerify compares a prefix with its manifest from here, with the
// environment's credentials. Where they differ, it returns both the document
// and an error.
func LocalVerify(ctx context.Context, getenv func(string) string, data []byte, emit func(record.Event)) (json.RawMessage, error) {
	getenv, err := tidy(getenv, emit)
	if err != nil {
		return nil, err
	}
	result, err := verifyWith(ctx, getenv, data, verify.Deps{Emit: serial(emit), ProgressEvery: localProgress}, true)
	if result == nil {
		return nil, err
	}
	document, encodeErr := record.Encode(result)
	if encodeErr != nil {
		return nil, encodeErr
	}
	return document, err
}

// verifyWith returns a nil document where the comparison could not be made.
func verifyWith(ctx context.Context, getenv func(string) string, data []byte, deps verify.Deps, here bool) (any, error) {
	var err error
	if deps.Transport, err = trusting(getenv(CAEnv)); err != nil {
		return nil, err
	}
	plan, err := decode[record.VerifyPlan](data, record.KindVerifyPlan)
	if err != nil {
		return nil, err
	}
	if here {
		if err := contact(ctx, "--s3-endpoint", plan.S3Endpoint); err != nil {
			return nil, err
		}
	}
	result, err := verify.Run(ctx, plan, deps)
	if err != nil {
		return nil, err
	}
	return result, verify.Error(result)
}
