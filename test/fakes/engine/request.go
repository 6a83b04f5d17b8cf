package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine/token"
)

// maxBody bounds a request body: the longest prompts are some megabytes of token ids.
const maxBody = 64 << 20

// apiRequest holds the fields that matter of a completion or chat request. The others are accepted and ignored.
type apiRequest struct {
	Model               string          `json:"model"`
	Prompt              json.RawMessage `json:"prompt"`
	Messages            []apiMessage    `json:"messages"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	MinTokens           int             `json:"min_tokens"`
	IgnoreEOS           bool            `json:"ignore_eos"`
	N                   *int            `json:"n"`
	Stream              bool            `json:"stream"`
	StreamOptions       struct {
		IncludeUsage         bool `json:"include_usage"`
		ContinuousUsageStats bool `json:"continuous_usage_stats"`
	} `json:"stream_options"`
}

type apiMessage struct {
	Role    string         `json:"role"`
	Content messageContent `json:"content"`
}

// messageContent is a string, null, or a list of parts of which the text counts.
type messageContent string

func (c *messageContent) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte("[")) {
		var parts []struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(data, &parts); err != nil {
			return err
		}
		var b strings.Builder
		for _, p := range parts {
			b.WriteString(p.Text)
		}
		*c = messageContent(b.String())
		return nil
	}
	return json.Unmarshal(data, (*string)(c))
}

// decode reads the JSON body of a request.
func decode(w http.ResponseWriter, r *http.Request, into any) *apiError {
	var body bytes.Buffer
	if n := r.ContentLength; n > 0 && n <= maxBody {
		body.Grow(int(n) + bytes.MinRead)
	}
	if _, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
		return badRequest("", "read body: "+err.Error())
	}
	if err := json.Unmarshal(body.Bytes(), into); err != nil {
		return badRequest("", "JSON decode error: "+err.Error())
	}
	return nil
}

// checkModel accepts the served names, and no name at all.
func (e *Engine) checkModel(name string) *apiError {
	if name == "" || slices.Contains(e.config.Names, name) {
		return nil
	}
	return &apiError{
		status:  http.StatusNotFound,
		message: fmt.Sprintf("The model `%s` does not exist.", name),
		param:   "model",
	}
}

// parsePrompt returns the prompts of a completion request: a string, a list of strings, token ids, or lists of those.
func parsePrompt(raw json.RawMessage) ([][]int32, *apiError) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return nil, badRequest("prompt", "Either prompt or prompt_embeds must be provided and non-empty.")
	}
	var prompts [][]int32
	switch promptKind(raw) {
	case '"':
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, badRequest("prompt", err.Error())
		}
		prompts = [][]int32{token.Encode(text)}
	case 's':
		var texts []string
		if err := json.Unmarshal(raw, &texts); err != nil {
			return nil, badRequest("prompt", "prompt must be a string, array of strings, array of tokens, or array of token arrays")
		}
		for _, text := range texts {
			prompts = append(prompts, token.Encode(text))
		}
	case 'l':
		var lists []json.RawMessage
		if err := json.Unmarshal(raw, &lists); err != nil {
			return nil, badRequest("prompt", err.Error())
		}
		for _, list := range lists {
			ids, err := parseIDs(list)
			if err != nil {
				return nil, err
			}
			prompts = append(prompts, ids)
		}
	default:
		ids, err := parseIDs(raw)
		if err != nil {
			return nil, err
		}
		prompts = [][]int32{ids}
	}
	for _, p := range prompts {
		if len(p) == 0 {
			return nil, badRequest("prompt", "The decoder prompt cannot be empty")
		}
	}
	return prompts, nil
}

// promptKind tells a string ('"'), a list of strings ('s'), a list of lists ('l') and token ids ('i') apart.
func promptKind(raw []byte) byte {
	if raw[0] == '"' {
		return '"'
	}
	inner := bytes.TrimLeft(raw[1:], " \t\r\n")
	switch {
	case len(inner) > 0 && inner[0] == '"':
		return 's'
	case len(inner) > 0 && inner[0] == '[':
		return 'l'
	default:
		return 'i'
	}
}

// parseIDs parses a JSON list of integers. Prompts are thousands of them, so it scans instead of unmarshalling.
func parseIDs(raw []byte) ([]int32, *apiError) {
	raw = bytes.TrimSpace(raw)
	bad := badRequest("prompt", "prompt must be a string, array of strings, array of tokens, or array of token arrays")
	if len(raw) < 2 || raw[0] != '[' || raw[len(raw)-1] != ']' {
		return nil, bad
	}
	raw = bytes.TrimSpace(raw[1 : len(raw)-1])
	if len(raw) == 0 {
		return nil, nil
	}
	ids := make([]int32, 0, bytes.Count(raw, []byte(","))+1)
	for len(raw) > 0 {
		field, rest, _ := bytes.Cut(raw, []byte(","))
		field = bytes.TrimSpace(field)
		id, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return nil, bad
		}
		if id < 0 || id >= int64(token.Vocabulary) {
			return nil, badRequest("prompt", fmt.Sprintf("Token id %d is out of vocabulary", id))
		}
		ids = append(ids, int32(id))
		raw = rest
	}
	return ids, nil
}

// limits returns how many tokens may and must be generated for a prompt.
func (e *Engine) limits(r *apiRequest, promptLength, fallback int) (most, least int, err *apiError) {
	length := e.config.Model.MaxModelLen
	if promptLength >= length {
		return 0, 0, badRequest("input_tokens", fmt.Sprintf(
			"This model's maximum context length is %d tokens. However, your request has %d input tokens. "+
				"Please reduce the length of the input messages.", length, promptLength))
	}
	most = min(fallback, length-promptLength)
	param := "max_tokens"
	if r.MaxTokens != nil {
		most = *r.MaxTokens
	}
	if r.MaxCompletionTokens != nil {
		most, param = *r.MaxCompletionTokens, "max_completion_tokens"
	}
	switch {
	case most < 1:
		return 0, 0, badRequest(param, fmt.Sprintf("max_tokens must be at least 1, got %d.", most))
	case most > length-promptLength:
		return 0, 0, badRequest(param, fmt.Sprintf(
			"'max_tokens' or 'max_completion_tokens' is too large: %d. This model's maximum context length is %d tokens "+
				"and your request has %d input tokens (%d > %d - %d).", most, length, promptLength, most, length, promptLength))
	case r.MinTokens < 0 || r.MinTokens > most:
		return 0, 0, badRequest("min_tokens", fmt.Sprintf(
			"min_tokens must be between 0 and max_tokens=%d, got %d.", most, r.MinTokens))
	}
	return most, r.MinTokens, nil
}

// outputLength decides where an answer ends: at its limit, or before at the end of sequence.
func (e *Engine) outputLength(ignoreEOS bool, seed uint64, most, least int) (n int, reason string) {
	if ignoreEOS || e.config.NaturalLength < 0 {
		return most, "length"
	}
	mean := uint64(e.config.NaturalLength)
	n = int(min(mean/2+seed%(mean+1), math.MaxInt32))
	if n = max(n, least, 1); n >= most {
		return most, "length"
	}
	return n, "stop"
}

// completionDefault is the number of tokens of a completion that does not say, as in the OpenAI API.
const completionDefault = 16

// maxChoices bounds the sequences of one request.
const maxChoices = 128

// newJobs makes the jobs of a request: n for each prompt, in the order of the choices.
func (e *Engine) newJobs(r *apiRequest, prompts [][]int32, fallback int) ([]*job, *apiError) {
	n := 1
	if r.N != nil {
		n = *r.N
	}
	if n < 1 || n*len(prompts) > maxChoices {
		return nil, badRequest("n", fmt.Sprintf("n must be at least 1 and at most %d choices in all, got %d.", maxChoices, n))
	}
	var (
		jobs    []*job
		bell    = make(chan struct{}, 1)
		arrived = e.config.Clock.Now()
	)
	for _, prompt := range prompts {
		most, least, err := e.limits(r, len(prompt), fallback)
		if err != nil {
			return nil, err
		}
		for i := range n {
			seed := token.Seed(prompt) + uint64(i)
			length, reason := e.outputLength(r.IgnoreEOS, seed, most, least)
			j := &job{reason: reason, bell: bell, arrived: arrived, seed: seed}
			j.request.Prompt = prompt
			j.request.Output = length
			j.request.Token = func(i int) int32 { return token.Generated(seed, i) }
			j.request.Owner = j
			jobs = append(jobs, j)
		}
	}
	return jobs, nil
}
