package runner

import (
	"context"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-inference/kubectl-inference/jobs/cluster"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/hold"
)

// holdPoll is how often the hold and the run that it is for are looked at.
const holdPoll = 2 * time.Second

func runHold(ctx context.Context, process Process, data []byte, emit func(record.Event)) (any, error) {
	plan, err := decode[record.HoldPlan](data, record.KindHoldPlan)
	if err != nil {
		return nil, err
	}
	pod, ok := cluster.Here(process.Getenv)
	if !ok {
		return nil, failure.New(failure.Usage, "start it with `kubectl inference bench --hold-scaling`", "hold scaling: this is not a Job of the plugin")
	}
	config, err := cluster.Config()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	end, err := hold.Run(ctx, plan, hold.Deps{Objects: objects, Client: client, Pod: pod, Poll: holdPoll, Now: time.Now, Emit: emit})
	if err != nil {
		return nil, err
	}
	return end, nil
}
