package runner

import (
	"context"
	"encoding/json"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/sync"
)

// localProgress is how often a sync that runs at a terminal reports.
const localProgress = time.Second

func runSync(ctx context.Context, process Process, data []byte, emit func(record.Event)) (any, error) {
	plan, err := decode[record.SyncPlan](data, record.KindSyncPlan)
	if err != nil {
		return nil, err
	}
	result, err := sync.Run(ctx, plan, sync.Deps{Token: hubToken(process.Getenv), Emit: emit, Version: process.Version})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// LocalSync runs a sync here, with the environment's credentials.
func LocalSync(ctx context.Context, getenv func(string) string, version string, data []byte, emit func(record.Event)) (json.RawMessage, error) {
	plan, err := decode[record.SyncPlan](data, record.KindSyncPlan)
	if err != nil {
		return nil, err
	}
	result, err := sync.Run(ctx, plan, sync.Deps{Token: hubToken(getenv), Emit: emit, Version: version, ProgressEvery: localProgress})
	if err != nil {
		return nil, err
	}
	return record.Encode(result)
}

// hubToken is the Hub's token by its present and its old name.
func hubToken(getenv func(string) string) string {
	if token := getenv("HF_TOKEN"); token != "" {
		return token
	}
	return getenv("HUGGING_FACE_HUB_TOKEN")
}
