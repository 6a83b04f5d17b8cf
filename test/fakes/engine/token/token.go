// Package token is the tokenizer of the engine fake: exact, reversible and without a vocabulary file.
//
// Text is cut from the left into runs of four ASCII bytes; a shorter run ends the text or precedes a character that is
// not ASCII, and such a character is a token of its own (two, if it takes four bytes). So n bytes of ASCII text are
// n/4 tokens, rounded up; a common beginning of two texts gives the same tokens; and decoding always gives back the
// bytes. The id of a token is its content: no table is needed, and every id below [Vocabulary] is valid, which makes
// random token ids usable as prompts.
package token

import (
	"fmt"
	"unicode/utf8"
)

// The id ranges: one, two and three bytes of any kind, four bytes of ASCII, then the special tokens.
const (
	one     = 0
	two     = one + 1<<8
	three   = two + 1<<16
	four    = three + 1<<24
	special = four + 1<<28
)

// Special tokens of the chat template.
const (
	// Begin starts a message; the role follows.
	Begin int32 = special + iota
	// Body separates the role from the content.
	Body
	// End ends a message.
	End
	// Vocabulary is the number of token ids.
	Vocabulary
)

// Encode returns the tokens of a text.
func Encode(text string) []int32 { return Append(make([]int32, 0, len(text)/4+1), text) }

// Append appends the tokens of a text to ids.
func Append(ids []int32, text string) []int32 {
	for len(text) > 0 {
		n := runLength(text)
		if n == 0 {
			_, n = utf8.DecodeRuneInString(text)
			if n == 4 {
				n = 3
			}
		}
		ids = append(ids, id(text[:n]))
		text = text[n:]
	}
	return ids
}

// Count returns the number of tokens of a text.
func Count(text string) int { return len(Encode(text)) }

// runLength returns the length of the ASCII run at the start of text, at most four.
func runLength(text string) int {
	n := 0
	for n < len(text) && n < 4 && text[n] < utf8.RuneSelf {
		n++
	}
	return n
}

// id packs at most four bytes; four only if all are ASCII.
func id(piece string) int32 {
	v := int32(0)
	bits := 8
	if len(piece) == 4 {
		bits = 7
	}
	for i := range len(piece) {
		v = v<<bits | int32(piece[i])
	}
	switch len(piece) {
	case 1:
		return one + v
	case 2:
		return two + v
	case 3:
		return three + v
	default:
		return four + v
	}
}

// Decode returns the text of the tokens.
func Decode(ids []int32) (string, error) {
	var b []byte
	for _, id := range ids {
		var err error
		if b, err = AppendText(b, id); err != nil {
			return "", err
		}
	}
	return string(b), nil
}

// AppendText appends the text of one token.
func AppendText(b []byte, id int32) ([]byte, error) {
	switch {
	case id < 0 || id >= Vocabulary:
		return b, fmt.Errorf("decode token: Token id %d is out of vocabulary", id)
	case id == Begin:
		return append(b, "<|begin|>"...), nil
	case id == Body:
		return append(b, "<|body|>"...), nil
	case id == End:
		return append(b, "<|end|>"...), nil
	case id >= four:
		v := id - four
		return append(b, byte(v>>21), byte(v>>14&0x7f), byte(v>>7&0x7f), byte(v&0x7f)), nil
	case id >= three:
		v := id - three
		return append(b, byte(v>>16), byte(v>>8), byte(v)), nil
	case id >= two:
		v := id - two
		return append(b, byte(v>>8), byte(v)), nil
	default:
		return append(b, byte(id)), nil
	}
}

// Generated is output token i of a request: a word of three letters and the space before it. Equal seeds give equal
// text, and encoding the text gives back the tokens.
func Generated(seed uint64, i int) int32 {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	x := mix(seed + uint64(i)*0x9e3779b97f4a7c15)
	word := [4]byte{
		' ',
		consonants[x%uint64(len(consonants))],
		vowels[x>>16%uint64(len(vowels))],
		consonants[x>>32%uint64(len(consonants))],
	}
	return four + int32(word[0])<<21 + int32(word[1])<<14 + int32(word[2])<<7 + int32(word[3])
}

// Seed derives the seed of a request's output from its prompt.
func Seed(prompt []int32) uint64 {
	h := uint64(len(prompt))
	for _, id := range prompt {
		h = mix(h ^ uint64(uint32(id)))
	}
	return h
}

// mix is the finaliser of SplitMix64.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// Message is one message of a chat.
type Message struct {
	Role, Content string
}

// Chat renders a conversation: each message costs three tokens more than its role and content, and the prompt of the
// answer another two and its role.
func Chat(messages []Message) []int32 {
	var ids []int32
	for _, m := range messages {
		ids = append(ids, Begin)
		ids = Append(ids, m.Role)
		ids = append(ids, Body)
		ids = Append(ids, m.Content)
		ids = append(ids, End)
	}
	ids = append(ids, Begin)
	ids = Append(ids, "assistant")
	return append(ids, Body)
}
