package runner

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/cluster"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/metrics"
	"github.com/kubectl-inference/kubectl-inference/jobs/sync"
)

const (
	// MetricsEnv is the address at which a sync serves its metrics, PushEnv the
	// URL of the Pushgateway that gets them at its end; "" is neither.
	MetricsEnv = "INFERENCE_METRICS_ADDRESS"
	PushEnv    = "INFERENCE_PUSH_GATEWAY"

	// SignKeyEnv holds the private key of a sync that signs, as PEM.
	SignKeyEnv = "INFERENCE_SIGN_KEY"

	// indexEnv is the pod's number in an Indexed Job, which Kubernetes sets.
	indexEnv = "JOB_COMPLETION_INDEX"

	// localProgress is how often a sync that runs at a terminal reports.
	localProgress = time.Second
)

func runSync(ctx context.Context, process Process, data []byte, emit func(record.Event)) (any, error) {
	plan, err := decode[record.SyncPlan](data, record.KindSyncPlan)
	if err != nil {
		return nil, err
	}
	deps, err := syncDeps(process.Getenv, process.Version)
	if err != nil {
		return nil, err
	}
	deps.InJob, deps.Hold = true, holder(process.Getenv)
	if pod, ok := cluster.Here(process.Getenv); ok {
		deps.Run = "Job " + pod.Namespace + "/" + pod.Job + " " + pod.JobUID
	}
	if plan.Workers > 1 && !plan.DryRun {
		if deps.Index, err = strconv.Atoi(process.Getenv(indexEnv)); err != nil || deps.Index < 0 || deps.Index >= plan.Workers {
			return nil, failure.New(failure.Usage, "start it with `kubectl inference sync-model --workers`", "read %s: %q is not the number of a worker", indexEnv, process.Getenv(indexEnv))
		}
	}
	meter := metrics.NewSync()
	deps.Emit = func(event record.Event) { meter.Event(event); emit(event) }
	if address := process.Getenv(MetricsEnv); address != "" {
		if _, err := meter.Serve(ctx, address); err != nil {
			return nil, err
		}
	}
	result, err := sync.Run(ctx, plan, deps)
	end := outcome(result, err)
	meter.Event(end)
	if gateway := process.Getenv(PushEnv); gateway != "" {
		// The delivery counts, whoever else hears of it.
		if pushErr := meter.Push(ctx, gateway, "sync-model", plan.Repo, deps.Index); pushErr != nil {
			emit(record.Event{Level: record.Warning, Name: "warning", Message: pushErr.Error()})
		}
	}
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
	if getenv, err = tidy(getenv, emit); err != nil {
		return nil, err
	}
	for flag, endpoint := range map[string]string{"--s3-endpoint": plan.S3Endpoint, "--hub-endpoint": plan.HubEndpoint} {
		if err := contact(ctx, flag, endpoint); err != nil {
			return nil, err
		}
	}
	deps, err := syncDeps(getenv, version)
	if err != nil {
		return nil, err
	}
	deps.Emit, deps.ProgressEvery = emit, localProgress
	result, err := sync.Run(ctx, plan, deps)
	if err != nil {
		return nil, err
	}
	return record.Encode(result)
}

// syncDeps is what a sync takes from the environment, wherever it runs.
func syncDeps(getenv func(string) string, version string) (sync.Deps, error) {
	transport, err := trusting(getenv(CAEnv))
	if err != nil {
		return sync.Deps{}, err
	}
	return sync.Deps{Token: hubToken(getenv), SignKey: []byte(getenv(SignKeyEnv)), Version: version, HubTransport: transport, StoreTransport: transport}, nil
}

// hubToken is the Hub's token by its present and its old name.
func hubToken(getenv func(string) string) string {
	if token := getenv("HF_TOKEN"); token != "" {
		return token
	}
	return getenv("HUGGING_FACE_HUB_TOKEN")
}
