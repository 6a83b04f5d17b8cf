package token_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine/token"
)

func TestEncode(t *testing.T) {
	for name, test := range map[string]struct {
		text   string
		pieces []string
	}{
		"empty":             {"", nil},
		"four bytes":        {"abcd", []string{"abcd"}},
		"rest":              {"abcdef", []string{"abcd", "ef"}},
		"spaces":            {"     ", []string{"    ", " "}},
		"accent cuts a run": {"caféx", []string{"caf", "é", "x"}},
		"emoji takes two":   {"a😀b", []string{"a", "\xf0\x9f\x98", "\x80", "b"}},
		"invalid bytes":     {"\xff\xfe", []string{"\xff", "\xfe"}},
		"nul":               {"\x00\x00", []string{"\x00\x00"}},
	} {
		t.Run(name, func(t *testing.T) {
			var pieces []string
			for _, id := range token.Encode(test.text) {
				s, err := token.Decode([]int32{id})
				if err != nil {
					t.Fatal(err)
				}
				pieces = append(pieces, s)
			}
			if diff := cmp.Diff(test.pieces, pieces); diff != "" {
				t.Errorf("pieces (-want +got):\n%s", diff)
			}
			if got := token.Count(test.text); got != len(test.pieces) {
				t.Errorf("count = %d, want %d", got, len(test.pieces))
			}
		})
	}
}

func FuzzRoundTrip(f *testing.F) {
	for _, s := range []string{"", "hello world", "\xff\x00é😀", strings.Repeat("x", 17)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := token.Decode(token.Encode(text))
		if err != nil {
			t.Fatal(err)
		}
		if got != text {
			t.Errorf("decoded %q, want %q", got, text)
		}
	})
}

func TestDecodeRefusesIdsOutsideTheVocabulary(t *testing.T) {
	for _, id := range []int32{-1, token.Vocabulary} {
		if _, err := token.Decode([]int32{id}); err == nil {
			t.Errorf("decoded %d", id)
		}
	}
	if _, err := token.Decode([]int32{0, 1000, 30000, 70000, token.Vocabulary - 1}); err != nil {
		t.Error(err)
	}
}

// vllm#10847, vllm#17408: prompts made of decoded tokens came out longer after encoding. Generated text must not.
func TestGeneratedTextEncodesToTheSameTokens(t *testing.T) {
	var ids []int32
	for i := range 500 {
		ids = append(ids, token.Generated(42, i))
	}
	text, err := token.Decode(ids)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ids, token.Encode(text)); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
	if token.Generated(42, 3) != ids[3] || token.Generated(43, 3) == ids[3] && token.Generated(43, 4) == ids[4] {
		t.Error("output does not depend on seed and position alone")
	}
}

func TestChatCountIsAdditive(t *testing.T) {
	base := len(token.Chat([]token.Message{{Role: "user", Content: ""}}))
	for _, content := range []string{"abc", "a longer question", strings.Repeat("w", 4096)} {
		got := len(token.Chat([]token.Message{{Role: "user", Content: content}}))
		if got != base+token.Count(content) {
			t.Errorf("%d tokens for %d of content over %d", got, token.Count(content), base)
		}
	}
}
