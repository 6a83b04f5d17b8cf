package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
)

// maxDepth bounds the recursion over nested values.
const maxDepth = 200

var errSyntax = errors.New("not valid JSON")

// scanner walks over one JSON value without building anything: a caller looks at
// the members that it wants and skips the others. It accepts what
// encoding/json accepts.
type scanner struct {
	data  []byte
	at    int
	depth int
}

func (s *scanner) space() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// peek returns the first byte of the next token, 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.at == len(s.data) {
		return 0
	}
	return s.data[s.at]
}

func (s *scanner) take(want byte) error {
	if s.peek() != want {
		return errSyntax
	}
	s.at++
	return nil
}

// end succeeds where nothing but white space is left.
func (s *scanner) end() error {
	if s.space(); s.at != len(s.data) {
		return errSyntax
	}
	return nil
}

// object calls member for every member of the object that comes next; member
// must consume the value.
func (s *scanner) object(member func(key []byte) error) error {
	if err := s.open('{'); err != nil {
		return err
	}
	defer s.close()
	if s.peek() == '}' {
		s.at++
		return nil
	}
	for {
		if s.peek() != '"' {
			return errSyntax
		}
		raw, err := s.raw()
		if err != nil {
			return err
		}
		if err := s.take(':'); err != nil {
			return err
		}
		if err := member(unquote(raw)); err != nil {
			return err
		}
		switch s.peek() {
		case ',':
			s.at++
		case '}':
			s.at++
			return nil
		default:
			return errSyntax
		}
	}
}

// array calls element for every element of the array that comes next; element
// must consume the value.
func (s *scanner) array(element func(index int) error) error {
	if err := s.open('['); err != nil {
		return err
	}
	defer s.close()
	if s.peek() == ']' {
		s.at++
		return nil
	}
	for index := 0; ; index++ {
		if err := element(index); err != nil {
			return err
		}
		switch s.peek() {
		case ',':
			s.at++
		case ']':
			s.at++
			return nil
		default:
			return errSyntax
		}
	}
}

func (s *scanner) open(bracket byte) error {
	if s.depth++; s.depth > maxDepth {
		return errors.New("values are nested too deeply")
	}
	return s.take(bracket)
}

func (s *scanner) close() { s.depth-- }

// raw consumes the next value and returns its bytes.
func (s *scanner) raw() ([]byte, error) {
	first := s.peek()
	start := s.at
	var err error
	switch {
	case first == '{':
		err = s.object(func([]byte) error { return s.skip() })
	case first == '[':
		err = s.array(func(int) error { return s.skip() })
	case first == '"':
		err = s.str()
	case first == 't':
		err = s.literal("true")
	case first == 'f':
		err = s.literal("false")
	case first == 'n':
		err = s.literal("null")
	case first == '-' || isDigit(first):
		err = s.number()
	default:
		err = errSyntax
	}
	return s.data[start:s.at], err
}

func (s *scanner) skip() error {
	_, err := s.raw()
	return err
}

func (s *scanner) literal(want string) error {
	if !bytes.HasPrefix(s.data[s.at:], []byte(want)) {
		return errSyntax
	}
	s.at += len(want)
	return nil
}

func (s *scanner) str() error {
	for i := s.at + 1; i < len(s.data); i++ {
		switch c := s.data[i]; {
		case c == '"':
			s.at = i + 1
			return nil
		case c < ' ':
			return errSyntax
		case c == '\\':
			if i++; i == len(s.data) {
				return errSyntax
			}
			switch s.data[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for range 4 {
					if i++; i == len(s.data) || !isHex(s.data[i]) {
						return errSyntax
					}
				}
			default:
				return errSyntax
			}
		}
	}
	return errSyntax
}

func (s *scanner) number() error {
	if s.data[s.at] == '-' {
		s.at++
	}
	if s.at < len(s.data) && s.data[s.at] == '0' {
		s.at++
	} else if !s.digits() {
		return errSyntax
	}
	if s.at < len(s.data) && s.data[s.at] == '.' {
		if s.at++; !s.digits() {
			return errSyntax
		}
	}
	if s.at < len(s.data) && s.data[s.at]|0x20 == 'e' {
		s.at++
		if s.at < len(s.data) && (s.data[s.at] == '+' || s.data[s.at] == '-') {
			s.at++
		}
		if !s.digits() {
			return errSyntax
		}
	}
	return nil
}

// digits consumes digits and says whether there was one.
func (s *scanner) digits() bool {
	start := s.at
	for s.at < len(s.data) && isDigit(s.data[s.at]) {
		s.at++
	}
	return s.at > start
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// unquote returns the text of a raw JSON string; almost always that is the
// bytes between its quotes.
func unquote(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return nil
	}
	return []byte(text)
}

// count reads a raw value as a whole number of 0 or more.
func count(raw []byte) (int, bool) {
	n, err := strconv.Atoi(string(raw))
	return n, err == nil && n >= 0
}
