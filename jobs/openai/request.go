package openai

import (
	"encoding/json"
	"strconv"
)

// Request is one request as it is sent. Prompt is token ids where the API is
// completions and ids are given; then the server tokenises nothing and the
// prompt's length is exact.
type Request struct {
	API    string
	Model  string
	Tokens []uint32
	Text   string
	// OutputTokens is both the least and the largest number of tokens, and the
	// end-of-sequence token does not end the answer (vLLM's ignore_eos).
	OutputTokens int
	Temperature  float64
	Stream       bool
	// ContinuousUsage asks for usage on every chunk.
	ContinuousUsage bool
}

// Body encodes the request. It is apart from sending so that the work is done
// before a request is due.
func (r Request) Body() []byte {
	body := make([]byte, 0, 256+7*len(r.Tokens)+len(r.Text))
	body = append(body, `{"model":`...)
	body = appendString(body, r.Model)
	switch {
	case r.API == "chat":
		body = append(body, `,"messages":[{"role":"user","content":`...)
		body = appendString(body, r.Text)
		body = append(body, `}]`...)
	case len(r.Tokens) > 0:
		body = append(body, `,"prompt":[`...)
		for i, id := range r.Tokens {
			if i > 0 {
				body = append(body, ',')
			}
			body = strconv.AppendUint(body, uint64(id), 10)
		}
		body = append(body, ']')
	default:
		body = append(body, `,"prompt":`...)
		body = appendString(body, r.Text)
	}
	body = append(body, `,"max_tokens":`...)
	body = strconv.AppendInt(body, int64(r.OutputTokens), 10)
	body = append(body, `,"min_tokens":`...)
	body = strconv.AppendInt(body, int64(r.OutputTokens), 10)
	body = append(body, `,"ignore_eos":true,"temperature":`...)
	body = strconv.AppendFloat(body, r.Temperature, 'g', -1, 64)
	if r.Stream {
		body = append(body, `,"stream":true,"stream_options":{"include_usage":true`...)
		if r.ContinuousUsage {
			body = append(body, `,"continuous_usage_stats":true`...)
		}
		body = append(body, '}')
	}
	return append(body, '}')
}

func appendString(body []byte, text string) []byte {
	// A string always encodes: invalid UTF-8 becomes the replacement character.
	quoted, _ := json.Marshal(text)
	return append(body, quoted...)
}
