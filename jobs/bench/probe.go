package bench

import (
	"context"
	"fmt"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/workload"
	"github.com/kubectl-inference/kubectl-inference/jobs/openai"
)

// The sets of prompts of a case; they have no prompt in common.
const (
	setProbe uint8 = iota
	setWarmup
	setMeasured
)

// probeTokens is the length of the probe's prompt: one block.
const probeTokens = workload.Block

// probe finds the model and sends one request, so that a wrong address, name or
// key is known before the clock starts.
func (r *run) probe(ctx context.Context) (record.TargetFacts, error) {
	models, err := r.client.Models(ctx)
	if err != nil {
		return record.TargetFacts{}, interrupted(ctx, err)
	}
	model, err := models.Choose(r.plan.Target.Model)
	if err != nil {
		return record.TargetFacts{Server: models.Server}, err
	}
	r.model = model.ID
	facts := record.TargetFacts{Model: model.ID, MaxModelLen: model.MaxModelLen, Server: models.Server}
	for _, c := range r.plan.Cases {
		if limit := model.MaxModelLen; limit != nil && c.PromptTokens+c.OutputTokens > *limit {
			return facts, failure.New(failure.Usage, "leave the case out, or serve the model with a larger --max-model-len",
				"check case %q: %d prompt and %d output tokens are more than the model's %d", c.Name, c.PromptTokens, c.OutputTokens, *limit)
		}
	}
	if r.prom != nil {
		if err := r.prom.Ready(ctx); err != nil {
			return facts, interrupted(ctx, err)
		}
	}
	prompt := r.request(record.BenchCase{PromptTokens: probeTokens, OutputTokens: 1}, workload.NewID(0, setProbe, 0))
	reply := r.client.Do(ctx, r.plan.Target.API, prompt.Body(), nil)
	if err := r.client.Check(reply, model.ID); err != nil {
		return facts, interrupted(ctx, err)
	}
	if r.plan.Target.API == record.APICompletions && reply.PromptTokens >= 0 && reply.PromptTokens != probeTokens {
		return facts, failure.New(failure.Usage, "the server must take token ids as a prompt, or use the chat API",
			"check prompt length: the server counts %d tokens where %d were sent", reply.PromptTokens, probeTokens)
	}
	facts.ProbeSeconds = ptr(reply.End().Sub(reply.Sent).Seconds())
	r.emit(record.Info, EventTarget, fmt.Sprintf("model %s at %s answers; first request took %.3gs", model.ID, r.plan.Target.URL, *facts.ProbeSeconds),
		map[string]any{"model": model.ID, "url": r.plan.Target.URL})
	return facts, nil
}

// interrupted gives the cancellation where that is why something failed.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return failure.New(failure.Interrupted, "", "probe the server: %w", context.Cause(ctx))
}

// request makes the request of one case and id.
func (r *run) request(c record.BenchCase, id workload.ID) openai.Request {
	request := openai.Request{
		API: r.plan.Target.API, Model: r.model, OutputTokens: c.OutputTokens,
		Temperature: r.plan.Temperature, Stream: r.plan.Stream, ContinuousUsage: r.plan.ContinuousUsage,
	}
	if r.plan.Target.API == record.APIChat {
		request.Text = workload.TextPrompt(r.seed, id, c.PromptTokens)
	} else {
		request.Tokens = workload.TokenPrompt(r.seed, id, c.PromptTokens)
	}
	return request
}

func ptr[T any](value T) *T { return &value }
