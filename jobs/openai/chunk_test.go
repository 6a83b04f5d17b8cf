package openai

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// seenChunk is a chunk as values that compare.
type seenChunk struct {
	Output, Reasoning          bool
	TokenIDs                   int
	Finish                     string
	Prompt, Completion, Cached int
	Fault                      bool
	Message, Code              string
}

func seen(c chunk) seenChunk {
	s := seenChunk{
		Output: c.hasOutput(), Reasoning: c.hasReasoning(), TokenIDs: c.tokenIDs,
		Prompt: c.usage.prompt, Completion: c.usage.completion, Cached: c.usage.cached, Fault: c.fault != nil,
	}
	if c.finish != nil {
		s.Finish = string(unquote(c.finish))
	}
	if c.fault != nil {
		s.Message, s.Code = c.fault.message, c.fault.code
	}
	return s
}

type members map[string]json.RawMessage

func object(raw json.RawMessage) members {
	var m members
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

func list(raw json.RawMessage) (elements []json.RawMessage, ok bool) {
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &elements) != nil {
		return nil, false
	}
	return elements, true
}

func stringOf(raw json.RawMessage) string {
	var text string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return text
}

func countOf(raw json.RawMessage) int {
	var n int
	if raw == nil || string(raw) == "null" || json.Unmarshal(raw, &n) != nil || n < 0 {
		return -1
	}
	return n
}

// show is a value as a message shows it.
func show(raw json.RawMessage) string {
	switch {
	case raw == nil || string(raw) == "null":
		return ""
	case raw[0] == '"':
		return stringOf(raw)
	}
	return string(raw)
}

// referenceChunk decodes the whole event and looks at the result.
func referenceChunk(data []byte) (seenChunk, bool) {
	want := seenChunk{TokenIDs: -1, Prompt: -1, Completion: -1, Cached: -1}
	if !json.Valid(data) {
		return want, false
	}
	top := object(bytes.TrimSpace(data))
	choices, _ := list(top["choices"])
	for place, raw := range choices {
		choice := object(raw)
		if choice == nil {
			continue
		}
		if n := countOf(choice["index"]); n >= 0 {
			place = n
		}
		if place != 0 {
			continue
		}
		delta := object(choice["delta"])
		if delta == nil {
			delta = object(choice["message"])
		}
		output := stringOf(choice["text"]) + stringOf(delta["content"]) + stringOf(delta["refusal"])
		calls, _ := list(delta["tool_calls"])
		for _, call := range calls {
			output += stringOf(object(object(call)["function"])["arguments"])
		}
		want.Output = output != ""
		want.Reasoning = stringOf(delta["reasoning_content"])+stringOf(delta["reasoning"]) != ""
		if ids, ok := list(choice["token_ids"]); ok {
			want.TokenIDs = len(ids)
		}
		want.Finish = stringOf(choice["finish_reason"])
		break
	}
	usage := object(top["usage"])
	want.Prompt, want.Completion = countOf(usage["prompt_tokens"]), countOf(usage["completion_tokens"])
	want.Cached = countOf(object(usage["prompt_tokens_details"])["cached_tokens"])
	switch fault := object(top["error"]); {
	case fault != nil:
		want.Fault, want.Message, want.Code = true, show(fault["message"]), show(fault["code"])
	case stringOf(top["error"]) != "":
		want.Fault, want.Message = true, stringOf(top["error"])
	case string(top["object"]) == `"error"`:
		want.Fault, want.Message, want.Code = true, show(top["message"]), show(top["code"])
	}
	return want, true
}

func TestParseChunk(t *testing.T) {
	none := seenChunk{TokenIDs: -1, Prompt: -1, Completion: -1, Cached: -1}
	with := func(change func(*seenChunk)) seenChunk {
		c := none
		change(&c)
		return c
	}
	output := with(func(c *seenChunk) { c.Output = true })
	reasoning := with(func(c *seenChunk) { c.Reasoning = true })
	tests := map[string]struct {
		data string
		want seenChunk
	}{
		"completions text":          {`{"id":"x","choices":[{"index":0,"text":" a","logprobs":null,"finish_reason":null}]}`, output},
		"empty text":                {`{"choices":[{"index":0,"text":""}]}`, none},
		"chat content":              {`{"choices":[{"delta":{"content":"a"},"index":0}]}`, output},
		"role alone":                {`{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`, none},
		"null content":              {`{"choices":[{"index":0,"delta":{"content":null}}]}`, none},
		"reasoning_content":         {`{"choices":[{"delta":{"reasoning_content":"hm"}}]}`, reasoning},
		"reasoning guidellm#737":    {`{"choices":[{"delta":{"reasoning":"hm"}}]}`, reasoning},
		"refusal":                   {`{"choices":[{"delta":{"refusal":"no"}}]}`, output},
		"tool call":                 {`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\""}}]}}]}`, output},
		"tool call name alone":      {`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":""}}]}}]}`, none},
		"other choice":              {`{"choices":[{"index":1,"text":"a"}]}`, none},
		"choice 0 comes second":     {`{"choices":[{"index":1,"text":""},{"index":0,"text":"a"}]}`, output},
		"finish with text":          {`{"choices":[{"text":"a","finish_reason":"length"}]}`, with(func(c *seenChunk) { c.Output, c.Finish = true, "length" })},
		"usage":                     {`{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":3}}}`, with(func(c *seenChunk) { c.Prompt, c.Completion, c.Cached = 7, 9, 3 })},
		"usage null":                {`{"choices":[],"usage":null}`, none},
		"usage that is no number":   {`{"usage":{"prompt_tokens":"7","completion_tokens":1.5}}`, none},
		"token ids":                 {`{"choices":[{"text":"ab","token_ids":[1,2]}]}`, with(func(c *seenChunk) { c.Output, c.TokenIDs = true, 2 })},
		"error object vllm#57519":   {`{"error":{"message":"EngineCore","type":"x","code":500}}`, with(func(c *seenChunk) { c.Fault, c.Message, c.Code = true, "EngineCore", "500" })},
		"error string":              {`{"error":"out of memory"}`, with(func(c *seenChunk) { c.Fault, c.Message = true, "out of memory" })},
		"error null":                {`{"error":null,"choices":[{"text":"a"}]}`, output},
		"object error":              {`{"object":"error","message":"bad","code":400}`, with(func(c *seenChunk) { c.Fault, c.Message, c.Code = true, "bad", "400" })},
		"escaped key":               {`{"choices":[{"t\u0065xt":"a"}]}`, output},
		"text that looks like JSON": {`{"choices":[{"text":"\"}],\"usage\":{"}]}`, output},
		"white space":               {" {\t\"choices\" :\r\n [ { \"text\" : \"a\" } ] } ", output},
		"not an object":             {`[1,2]`, none},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var c chunk
			if err := parseChunk([]byte(test.data), &c); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, seen(c)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			reference, _ := referenceChunk([]byte(test.data))
			if diff := cmp.Diff(test.want, reference); diff != "" {
				t.Errorf("reference (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseChunkText(t *testing.T) {
	var c chunk
	if err := parseChunk([]byte(`{"choices":[{"text":"a "}]}`), &c); err != nil {
		t.Fatal(err)
	}
	if got := string(unquote(c.output)); got != "a " {
		t.Errorf("got %q", got)
	}
}

func TestParseChunkSyntax(t *testing.T) {
	for _, data := range []string{
		"", "{", `{"a"}`, `{"a":1,}`, `[1,]`, `{"a":01}`, `{"a":1.}`, `{"a":1e}`, `{"a":-}`, `{"a":"\x"}`, `{"a":"\u12g4"}`, "{\"a\":\"\n\"}",
		`{"a":tru}`, `{} {}`, `{a:1}`, `{"a":1 "b":2}`, `<html>`, strings.Repeat("[", 300) + strings.Repeat("]", 300),
	} {
		var c chunk
		if err := parseChunk([]byte(data), &c); err == nil {
			t.Errorf("%q was accepted", data)
		}
	}
}

// repeated says whether some object has a name twice, which JSON leaves open.
func repeated(data []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(data))
	var names []map[string]bool // nil for an array
	isName := false
	for {
		token, err := decoder.Token()
		if err != nil {
			return false
		}
		inObject := len(names) > 0 && names[len(names)-1] != nil
		switch value := token.(type) {
		case json.Delim:
			switch value {
			case '{':
				names = append(names, map[string]bool{})
				isName = true
				continue
			case '[':
				names = append(names, nil)
			default:
				names = names[:len(names)-1]
			}
		case string:
			if inObject && isName {
				if names[len(names)-1][value] {
					return true
				}
				names[len(names)-1][value] = true
				isName = false
				continue
			}
		}
		isName = len(names) > 0 && names[len(names)-1] != nil
	}
}

func FuzzParseChunk(f *testing.F) {
	for _, seed := range []string{
		`{"id":"x","choices":[{"index":0,"text":" a","finish_reason":null,"token_ids":[1]}],"usage":{"prompt_tokens":1,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":0}}}`,
		`{"choices":[{"delta":{"content":"a","reasoning":"b","tool_calls":[{"function":{"arguments":"c"}}]}}]}`,
		`{"error":{"message":"m","code":500}}`, `{"object":"error","message":"m"}`, `[true,false,null,-1.5e+3,"\u00e9\\"]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 || !utf8.Valid(data) || bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) > maxDepth || repeated(data) {
			return
		}
		want, valid := referenceChunk(data)
		var c chunk
		err := parseChunk(data, &c)
		if valid != (err == nil) {
			t.Fatalf("%q: valid %v, got %v", data, valid, err)
		}
		// Of both a delta and a message the later one counts; no server sends both.
		if !valid || bytes.Contains(data, []byte("message")) && bytes.Contains(data, []byte("delta")) || bytes.Contains(data, []byte(`\u`)) {
			return
		}
		if diff := cmp.Diff(want, seen(c)); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", data, diff)
		}
	})
}
