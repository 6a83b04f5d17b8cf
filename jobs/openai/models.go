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

// Model is one model that a server offers.
type Model struct {
	ID string `json:"id"`
	// MaxModelLen is the longest prompt and answer together; nil where the
	// server does not say.
	MaxModelLen *int `json:"max_model_len"`
	// Parent is the base model of a LoRA adapter, nil for a base model.
	Parent *string `json:"parent"`
}

// Models is a server's answer to GET /v1/models.
type Models struct {
	// Server is the Server header.
	Server string
	Models []Model
	// Path holds the phases of the exchange.
	Path record.PathPhases
	// Known is false where the server has no list (status 404 or 405).
	Known bool
}

// Models asks the server which models it offers.
func (c *Client) Models(ctx context.Context) (Models, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Timeout, errTotal)
	defer cancel()
	trace := &phases{now: c.Now}
	start := c.Now()
	request, err := c.request(trace.context(ctx), http.MethodGet, "models", nil)
	if err != nil {
		return Models{}, err
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return Models{}, c.unreachable(err)
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	body, err := io.ReadAll(io.LimitReader(response.Body, maxReply))
	if err != nil {
		return Models{}, c.unreachable(err)
	}
	models := Models{Server: failure.Clean(response.Header.Get("Server")), Path: trace.path(start)}
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return models, nil
	default:
		return models, statusError(response.StatusCode, fmt.Sprintf("list models of %s", c.URL), faultMessage(body))
	}
	var list struct {
		Data []Model `json:"data"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return models, failure.New(failure.Failed, "the URL must be that of an OpenAI-compatible server", "list models of %s: the answer is not a list of models: %w", c.URL, err)
	}
	models.Models, models.Known = list.Data, true
	return models, nil
}

// Choose returns the model to measure: the named one, or without a name the
// only base model.
func (m Models) Choose(name string) (Model, error) {
	var ids []string
	var base []Model
	for _, model := range m.Models {
		if model.ID == name && name != "" {
			return model, nil
		}
		ids = append(ids, model.ID)
		if model.Parent == nil {
			base = append(base, model)
		}
	}
	served := "it serves " + failure.Clean(strings.Join(ids, ", "))
	switch {
	case name != "" && !m.Known:
		return Model{ID: name}, nil
	case name != "":
		return Model{}, failure.New(failure.NotFound, served, "find model %q: the server does not serve it", name)
	case !m.Known:
		return Model{}, failure.New(failure.Usage, "name the model with --model", "find model: the server has no list of models")
	case len(base) == 1:
		return base[0], nil
	case len(ids) == 0:
		return Model{}, failure.New(failure.NotFound, "wait until the server has loaded its model", "find model: the server serves none")
	}
	return Model{}, failure.New(failure.Usage, "choose one with --model: "+served, "find model: the server serves %d", len(ids))
}

func (c *Client) unreachable(err error) error {
	return failure.New(failure.Unreachable, "check the URL, and that the server is up and can be reached from here", "reach %s: %w", c.URL, cause(err))
}

// Check turns the reply to a single request, sent before anything is measured,
// into the failure that its user can act on; nil for success.
func (c *Client) Check(reply *Reply, model string) error {
	act := fmt.Sprintf("send a first request to %s for model %q", c.URL, model)
	switch {
	case reply.Class == "":
		return nil
	case reply.Status != 0 && reply.Status != http.StatusOK:
		return statusError(reply.Status, act, reply.Message)
	case reply.Status == 0:
		return failure.New(failure.Unreachable, "check the URL, and that the server is up and can be reached from here", "%s: %s: %s", act, reply.Class, reply.Message)
	}
	return failure.New(failure.Failed, "", "%s: %s: %s", act, reply.Class, reply.Message)
}

func statusError(status int, act, message string) error {
	kind, hint := failure.Failed, ""
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		kind, hint = failure.Denied, "give the API key in the environment variable that the plan names"
	case status == http.StatusNotFound:
		kind, hint = failure.NotFound, "check the path of the URL and the model's id against GET /v1/models"
	case status == http.StatusBadRequest, status == http.StatusUnprocessableEntity:
		kind = failure.Usage
	case status == http.StatusBadGateway, status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		kind, hint = failure.Unreachable, "the gateway answers, the server behind it does not: is the predictor ready?"
	}
	return failure.New(kind, hint, "%s: status %d: %s", act, status, message)
}

// faultMessage is the message of an error document, or its text.
func faultMessage(body []byte) string {
	var c chunk
	if parseChunk(body, &c) == nil && c.fault != nil && c.fault.message != "" {
		return failure.Clean(c.fault.message)
	}
	return failure.Clean(string(body[:min(len(body), 200)]))
}
