package runner

import (
	"context"
	"encoding/json"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/prune"
)

func runPrune(ctx context.Context, process Process, data []byte, emit func(record.Event)) (any, error) {
	plan, err := decode[record.PrunePlan](data, record.KindPrunePlan)
	if err != nil {
		return nil, err
	}
	transport, err := trusting(process.Getenv(CAEnv))
	if err != nil {
		return nil, err
	}
	result, err := prune.Run(ctx, plan, prune.Deps{Emit: emit, Transport: transport})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// LocalPrune prunes from here, with the environment's credentials.
func LocalPrune(ctx context.Context, getenv func(string) string, data []byte, emit func(record.Event)) (json.RawMessage, error) {
	getenv, err := tidy(getenv, emit)
	if err != nil {
		return nil, err
	}
	plan, err := decode[record.PrunePlan](data, record.KindPrunePlan)
	if err != nil {
		return nil, err
	}
	if err := contact(ctx, "--s3-endpoint", plan.S3Endpoint); err != nil {
		return nil, err
	}
	result, err := runPrune(ctx, Process{Getenv: getenv}, data, emit)
	if err != nil {
		return nil, err
	}
	return record.Encode(result)
}
