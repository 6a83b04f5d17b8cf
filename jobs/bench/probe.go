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
	setArrivals
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
	for _, c := range r.shapes() {
		prompt, output := c.Mix().Longest()
		if limit := model.MaxModelLen; limit != nil && prompt+output > *limit {
			return facts, failure.New(failure.Usage, "leave the case out, shorten it, or serve the model with a larger --max-model-len",
				"check case %q: %d prompt and %d output tokens are more than the model's %d", c.Name, prompt, output, *limit)
		}
	}
	if r.prom != nil {
		if err := r.prom.Ready(ctx); err != nil {
			return facts, interrupted(ctx, err)
		}
	}
	reply, err := r.choosePrompts(ctx)
	facts.Protocol, facts.PromptsBy = reply.Protocol, r.prompts.by
	if err != nil {
		return facts, interrupted(ctx, err)
	}
	facts.ProbeSeconds = ptr(reply.End().Sub(reply.Sent).Seconds())
	facts.Phases = &models.Path
	if r.plan.Target.Insecure {
		r.emit(record.Warning, EventTarget, "the server's certificate is not verified: anybody on the way can read and change what is sent, the API key too", nil)
	}
	r.emit(record.Info, EventTarget, fmt.Sprintf("model %s at %s answers over %s; first request took %.3gs%s", model.ID, r.plan.Target.URL, reply.Protocol, *facts.ProbeSeconds, pathLine(models.Path)),
		map[string]any{"model": model.ID, "url": r.plan.Target.URL})
	return facts, nil
}

// interrupted gives the cancellation where that is why something failed.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return failure.New(failure.Interrupted, "", "stopped while waiting for the server's first answer: nothing was measured")
}

// request makes one request.
func (r *run) request(prompt workload.Prompt, output int) openai.Request {
	request := openai.Request{
		API: r.plan.Target.API, Model: r.model, OutputTokens: output,
		Temperature: r.plan.Temperature, Stream: r.plan.Stream, ContinuousUsage: r.plan.ContinuousUsage,
	}
	if r.prompts.text {
		request.Text = prompt.Text(r.seed, r.prompts.words, r.prompts.template)
	} else {
		request.Tokens = prompt.Tokens(r.seed)
	}
	return request
}

func ptr[T any](value T) *T { return &value }
