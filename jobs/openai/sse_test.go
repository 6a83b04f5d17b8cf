package openai

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type sseEvent struct{ Type, Data string }

// referenceParse is the slow, obvious reading of the standard, for a stream that
// is there as a whole.
func referenceParse(stream string) []sseEvent {
	stream = strings.TrimPrefix(stream, "\xef\xbb\xbf")
	stream = strings.ReplaceAll(stream, "\r\n", "\n")
	stream = strings.ReplaceAll(stream, "\r", "\n")
	lines := strings.Split(stream, "\n")
	lines = lines[:len(lines)-1] // what follows the last line end is no line
	var events []sseEvent
	var kind string
	var data []string
	for _, line := range lines {
		if line == "" {
			if data != nil {
				events = append(events, sseEvent{kind, strings.Join(data, "\n")})
			}
			kind, data = "", nil
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "data":
			data = append(data, value)
		case "event":
			kind = value
		}
	}
	return events
}

func parseReads(t *testing.T, reads ...string) []sseEvent {
	t.Helper()
	var events []sseEvent
	var p eventParser
	for _, read := range reads {
		// The parser must not keep the reader's buffer.
		buffer := []byte(read)
		if err := p.feed(buffer, func(event, data []byte) {
			events = append(events, sseEvent{string(event), string(data)})
		}); err != nil {
			t.Fatal(err)
		}
		clear(buffer)
	}
	return events
}

func TestEventParser(t *testing.T) {
	tests := map[string]struct {
		stream string
		want   []sseEvent
	}{
		"one":                                   {"data: a\n\n", []sseEvent{{"", "a"}}},
		"no space after the colon vllm#27412":   {"event: x\nid: 7\nretry: 9\ndata:{\"a\":1}\n\n", []sseEvent{{"x", `{"a":1}`}}},
		"one of two spaces":                     {"data:  a\n\n", []sseEvent{{"", " a"}}},
		"CRLF":                                  {"data: a\r\n\r\ndata: b\r\n\r\n", []sseEvent{{"", "a"}, {"", "b"}}},
		"CR":                                    {"data: a\r\rdata: b\r\r", []sseEvent{{"", "a"}, {"", "b"}}},
		"mixed":                                 {"data: a\r\n\rdata: b\n\r\n", []sseEvent{{"", "a"}, {"", "b"}}},
		"comments sglang#37986":                 {": keep-alive\n\n:\n\ndata: a\n: x\n\n", []sseEvent{{"", "a"}}},
		"two data lines":                        {"data: a\ndata:b\n\n", []sseEvent{{"", "a\nb"}}},
		"empty data":                            {"data\n\ndata:\n\n", []sseEvent{{"", ""}, {"", ""}}},
		"empty first data line":                 {"data\ndata: a\n\n", []sseEvent{{"", "\na"}}},
		"byte order mark":                       {"\xef\xbb\xbfdata: a\n\n", []sseEvent{{"", "a"}}},
		"second byte order mark":                {"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", nil},
		"later byte order mark":                 {"data: a\n\n\xef\xbb\xbfdata: b\n\n", []sseEvent{{"", "a"}}},
		"no empty line at the end":              {"data: a\n\ndata: b\n", []sseEvent{{"", "a"}}},
		"field that begins like data":           {"database: a\ndata: b\n\n", []sseEvent{{"", "b"}}},
		"event without data":                    {"event: ping\n\ndata: a\n\n", []sseEvent{{"", "a"}}},
		"line separator in JSON is no line end": {"data: \"a\u2028b\"\n\n", []sseEvent{{"", "\"a\u2028b\""}}},
		"UTF-8":                                 {"data: héé€😀\n\n", []sseEvent{{"", "héé€😀"}}},
		"spaces kept vllm#51172":                {"data: {\"text\":\"a \"}\n\n", []sseEvent{{"", `{"text":"a "}`}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, referenceParse(test.stream)); diff != "" {
				t.Errorf("reference (-want +got):\n%s", diff)
			}
			for split := range len(test.stream) + 1 {
				if diff := cmp.Diff(test.want, parseReads(t, test.stream[:split], test.stream[split:])); diff != "" {
					t.Errorf("split at %d (-want +got):\n%s", split, diff)
				}
			}
			if diff := cmp.Diff(test.want, parseReads(t, strings.Split(test.stream, "")...)); diff != "" {
				t.Errorf("rune by rune (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEventParserBounds(t *testing.T) {
	var p eventParser
	piece := []byte("data: " + strings.Repeat("x", 1<<20))
	var err error
	for range 20 {
		if err = p.feed(piece, func([]byte, []byte) {}); err != nil {
			break
		}
	}
	if err == nil {
		t.Error("an endless line was accepted")
	}
}

func FuzzEventParser(f *testing.F) {
	for _, seed := range []string{
		"data: a\n\n", "data:a\r\n\r\n:c\r\rdata\rdata: b\n\n", "\xef\xbb\xbfdata: a\n\n", "event: e\ndata: {\"x\": 1}\n\n", "data: a\ndata: b\r\ndata: c\r\r",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		if len(stream) > 300 {
			return
		}
		want := referenceParse(stream)
		for split := range len(stream) + 1 {
			if diff := cmp.Diff(want, parseReads(t, stream[:split], stream[split:])); diff != "" {
				t.Fatalf("%q split at %d (-want +got):\n%s", stream, split, diff)
			}
		}
		bytewise := make([]string, len(stream))
		for i := range len(stream) {
			bytewise[i] = stream[i : i+1]
		}
		if diff := cmp.Diff(want, parseReads(t, bytewise...)); diff != "" {
			t.Fatalf("%q byte by byte (-want +got):\n%s", stream, diff)
		}
	})
}
