package engine

import (
	"net/http"

	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine/token"
)

// models lists the served names.
func (e *Engine) models(w http.ResponseWriter, _ *http.Request) {
	type card struct {
		ID          string  `json:"id"`
		Object      string  `json:"object"`
		Created     int64   `json:"created"`
		OwnedBy     string  `json:"owned_by"`
		Root        string  `json:"root"`
		Parent      *string `json:"parent"`
		MaxModelLen int     `json:"max_model_len"`
	}
	cards := make([]card, len(e.config.Names))
	for i, name := range e.config.Names {
		cards[i] = card{
			ID: name, Object: "model", Created: e.created, OwnedBy: "vllm",
			Root: e.config.Root, MaxModelLen: e.config.Model.MaxModelLen,
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": cards})
}

// tokenize gives the tokens of a prompt or a conversation. There is no token for the beginning of a text, so
// add_special_tokens changes nothing.
func (e *Engine) tokenize(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Model           string       `json:"model"`
		Prompt          string       `json:"prompt"`
		Messages        []apiMessage `json:"messages"`
		ReturnTokenStrs bool         `json:"return_token_strs"`
	}
	if err := decode(w, r, &request); err != nil {
		writeError(w, err)
		return
	}
	if err := e.checkModel(request.Model); err != nil {
		writeError(w, err)
		return
	}
	ids := token.Encode(request.Prompt)
	if len(request.Messages) > 0 {
		ids = token.Chat(messages(request.Messages))
	}
	var pieces []string
	if request.ReturnTokenStrs {
		for _, id := range ids {
			// The ids come from the tokenizer itself.
			piece, _ := token.Decode([]int32{id})
			pieces = append(pieces, piece)
		}
	}
	writeJSON(w, http.StatusOK, struct {
		Count       int      `json:"count"`
		MaxModelLen int      `json:"max_model_len"`
		Tokens      []int32  `json:"tokens"`
		TokenStrs   []string `json:"token_strs"`
	}{len(ids), e.config.Model.MaxModelLen, ids, pieces})
}

// detokenize gives the text of token ids.
func (e *Engine) detokenize(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Model  string  `json:"model"`
		Tokens []int32 `json:"tokens"`
	}
	if err := decode(w, r, &request); err != nil {
		writeError(w, err)
		return
	}
	if err := e.checkModel(request.Model); err != nil {
		writeError(w, err)
		return
	}
	text, err := token.Decode(request.Tokens)
	if err != nil {
		writeError(w, badRequest("tokens", err.Error()))
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"prompt": text})
}
