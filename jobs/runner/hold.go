package runner

import (
	"context"
	"time"

	"k8s.io/client-go/dynamic"

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
	here, err := needJob(process, "kubectl inference bench --hold-scaling", "hold scaling")
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(here.config)
	if err != nil {
		return nil, err
	}
	end, err := hold.Run(ctx, plan, hold.Deps{Objects: objects, Client: here.client, Pod: here.pod, Poll: holdPoll, Now: time.Now, Emit: emit})
	if err != nil {
		return nil, err
	}
	return end, nil
}
