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

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
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
			if errors.Is(ctx.Err(), context.Canceled) {
				return answer{}, ctx.Err()
			}
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
	var served []string
	for _, model := range models.Data {
		served = append(served, model.ID)
		if r.plan.ServedModel != "" && model.ID != r.plan.ServedModel {
			continue
		}
		request := map[string]any{"model": model.ID, "prompt": "Hello", "max_tokens": 1}
		if err := r.call(ctx, http.MethodPost, "/v1/completions", request, nil); err != nil {
			return answer{}, err
		}
		return answer{at: r.deps.Now(), model: model.ID, maxModelLen: model.MaxModelLen}, nil
	}
	return answer{}, failure.New(failure.Differs, "check --served-model-name", "ask %s for its models: it serves %q, not %q", r.plan.URL, served, r.plan.ServedModel)
}

// call makes one request. A status that will not change by waiting is a
// failure.Error; anything else is worth another try.
func (r *run) call(ctx context.Context, method, path string, body, out any) error {
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(r.plan.URL, "/")+path, bytes.NewReader(data))
	if err != nil {
		return failure.New(failure.Usage, "", "read plan: %w", err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
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
