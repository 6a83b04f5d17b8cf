package engine

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine/token"
)

// The scanner for token ids must accept and give exactly what a JSON parser would.
func FuzzParsePrompt(f *testing.F) {
	for _, s := range []string{`"text"`, `["a","b"]`, `[1,2,3]`, `[[1],[2,3]]`, `[ 1 , 2 ]`, `[]`, `[[]]`, `[1.5]`, `[-1]`, `[1,"a"]`, `{}`, `5`, `null`, `[null]`, `[1e3]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if !json.Valid([]byte(raw)) {
			t.Skip("the request as a whole would have been refused")
		}
		prompts, err := parsePrompt(json.RawMessage(raw))
		if err != nil {
			if err.status != 400 || err.message == "" {
				t.Errorf("refused with %+v", err)
			}
			return
		}
		for _, p := range prompts {
			if len(p) == 0 {
				t.Error("empty prompt accepted")
			}
			for _, id := range p {
				if id < 0 || id >= token.Vocabulary {
					t.Errorf("token id %d accepted", id)
				}
			}
		}
		var ids []int32
		if json.Unmarshal([]byte(raw), &ids) == nil && len(ids) > 0 {
			if diff := cmp.Diff([][]int32{ids}, prompts); diff != "" {
				t.Errorf("token ids (-want +got):\n%s", diff)
			}
		}
	})
}
