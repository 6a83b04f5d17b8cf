package rollout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/podstate"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// maxAnswer bounds what is read of an answer.
const maxAnswer = 1 << 20

// answer is what the first request through the Service found.
type answer struct {
	at          time.Time
	model       string
	maxModelLen *int
}

// firstRequest asks the predictor, through its Service, which model it serves
// and for one token. Services take a moment to learn of a ready pod, so a
// refused connection is tried again.
func (r *run) firstRequest(ctx context.Context) (answer, error) {
	for {
		found, err := r.ask(ctx)
		if err == nil {
			r.say("served", "%s answers at %s", found.model, r.plan.URL)
			return found, nil
		}
		var refusal *failure.Error
		if errors.As(err, &refusal) {
			return answer{}, err
		}
		select {
		case <-ctx.Done():
			return answer{}, failure.New(failure.Timeout, "", "send the first request to %s: %w", r.plan.URL, err)
		case <-time.After(r.deps.Poll):
		}
	}
}

func (r *run) ask(ctx context.Context) (answer, error) {
	var models struct {
		Data []struct {
			ID          string `json:"id"`
			MaxModelLen *int   `json:"max_model_len"`
		} `json:"data"`
	}
	if err := r.call(ctx, http.MethodGet, "/v1/models", nil, &models); err != nil {
		return answer{}, err
	}
	for _, model := range models.Data {
		if r.plan.ServedModel != "" && model.ID != r.plan.ServedModel {
			continue
		}
		request := map[string]any{"model": model.ID, "prompt": "Hello", "max_tokens": 1}
		if err := r.call(ctx, http.MethodPost, "/v1/completions", request, nil); err != nil {
			return answer{}, err
		}
		return answer{at: r.deps.Now(), model: model.ID, maxModelLen: model.MaxModelLen}, nil
	}
	return answer{}, failure.New(failure.Differs, "check --served-model-name", "ask %s for its models: it does not serve %q", r.plan.URL, r.plan.ServedModel)
}

// call makes one request. A status that will not change by waiting is a
// failure.Error; anything else is worth another try.
func (r *run) call(ctx context.Context, method, path string, body, out any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(r.plan.URL, "/")+path, bytes.NewReader(data))
	if err != nil {
		return failure.New(failure.Usage, "", "read plan: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := r.deps.HTTP.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return err
	}
	switch {
	case response.StatusCode >= 500 || response.StatusCode == http.StatusTooManyRequests:
		return fmt.Errorf("status %d", response.StatusCode)
	case response.StatusCode >= 400:
		return failure.New(failure.Failed, "", "ask %s%s: status %d: %s", r.plan.URL, path, response.StatusCode, firstBytes(text, 200))
	case out == nil:
		return nil
	}
	return json.Unmarshal(text, out)
}

func firstBytes(text []byte, n int) string { return string(text[:min(n, len(text))]) }

// starts measures the pods that were made since the rollout began. Pod times
// have whole seconds, so a phase can be off by one; the sum is not.
func starts(pods []corev1.Pod, since, answered time.Time) []record.ReplicaStart {
	replicas := []record.ReplicaStart{}
	for i := range pods {
		pod := &pods[i]
		if pod.CreationTimestamp.Time.Before(since.Truncate(time.Second)) {
			continue
		}
		ready, ok := podstate.Ready(pod)
		if !ok || len(pod.Status.ContainerStatuses) == 0 {
			continue
		}
		start := record.ReplicaStart{Pod: pod.Name, Node: pod.Spec.NodeName, Image: pod.Spec.Containers[0].Image, Created: pod.CreationTimestamp.UTC()}
		at := pod.CreationTimestamp.Time
		phase := func(end time.Time) *float64 {
			seconds := max(0, end.Sub(at).Seconds())
			at = at.Add(time.Duration(seconds * float64(time.Second)))
			start.TotalSeconds += seconds
			return &seconds
		}
		if scheduled, ok := podstate.Condition(pod, corev1.PodScheduled); ok && scheduled.Status == corev1.ConditionTrue {
			start.QueuedSeconds = phase(scheduled.LastTransitionTime.Time)
		}
		if running := pod.Status.ContainerStatuses[0].State.Running; running != nil {
			start.PreparedSeconds = phase(running.StartedAt.Time)
		}
		start.LoadedSeconds = phase(ready.LastTransitionTime.Time)
		replicas = append(replicas, start)
	}
	// With one replica there is no doubt who answered.
	if len(replicas) == 1 && len(pods) == 1 {
		only := &replicas[0]
		seconds := max(0, answered.Sub(only.Created).Seconds()-only.TotalSeconds)
		only.FirstTokenSeconds = &seconds
		only.TotalSeconds += seconds
	}
	return replicas
}
