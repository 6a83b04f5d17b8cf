package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// CountTokens asks the server how many tokens a prompt has, chat template
// included (POST /tokenize, vLLM's and SGLang's extension beside /v1). known is
// false where the server has no such endpoint.
func (c *Client) CountTokens(ctx context.Context, api, model, text string) (n int, known bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Timeout, errTotal)
	defer cancel()
	body := map[string]any{"model": model, "prompt": text}
	if api == record.APIChat {
		body = map[string]any{"model": model, "messages": []map[string]string{{"role": "user", "content": text}}, "add_generation_prompt": true}
	}
	// Strings and maps of them always encode.
	encoded, _ := json.Marshal(body)
	base := strings.TrimSuffix(strings.TrimSuffix(c.URL, "/"), "/v1")
	request, err := c.requestTo(ctx, http.MethodPost, base+"/tokenize", encoded)
	if err != nil {
		return 0, false, err
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return 0, false, c.unreachable(err)
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxReply))
	if err != nil {
		return 0, false, c.unreachable(err)
	}
	var counted struct {
		Count *int `json:"count"`
	}
	switch {
	case response.StatusCode >= 500:
		return 0, false, statusError(response.StatusCode, fmt.Sprintf("count tokens at %s", c.URL), faultMessage(answer))
	// A gateway may let only /v1 through, with any status or page.
	case response.StatusCode != http.StatusOK || json.Unmarshal(answer, &counted) != nil || counted.Count == nil:
		return 0, false, nil
	case *counted.Count < 1:
		return 0, false, failure.New(failure.Failed, "", "count tokens at %s: the server counts %d", c.URL, *counted.Count)
	}
	return *counted.Count, true, nil
}
