package openai

import (
	"bytes"
	"errors"
)

// maxEvent bounds the memory that one event of a broken stream can take.
const maxEvent = 16 << 20

var errEventTooLong = errors.New("an event is longer than 16 MiB")

// eventParser reads a stream of server-sent events as the HTML standard says
// (section 9.2.6): lines end in LF, CR or CRLF wherever the reads are split, a
// byte order mark may come first, lines that start with a colon are comments,
// one space after a field's colon is not part of its value, the data lines of
// an event are joined with LF, and an event ends with an empty line. What
// follows the last empty line is not an event. The zero value is ready.
type eventParser struct {
	line    []byte // the unfinished line of earlier reads
	data    []byte // the data of the unfinished event, from earlier reads
	event   []byte // its type
	hasData bool
	afterCR bool // the last byte read was CR: an LF now belongs to it
	started bool // the first line was seen: no byte order mark any more
}

// feed parses the next bytes of the stream and calls emit for every event that
// they complete. The slices are valid during the call only.
func (p *eventParser) feed(read []byte, emit func(event, data []byte)) error {
	// data is the event's data so far: most events are one line that lies in
	// this read, and are then passed on without being copied.
	data, copied := p.data, true
	for len(read) > 0 {
		if p.afterCR {
			p.afterCR = false
			if read[0] == '\n' {
				read = read[1:]
				continue
			}
		}
		end := lineEnd(read)
		if end < 0 {
			break
		}
		line := read[:end]
		p.afterCR = read[end] == '\r'
		read = read[end+1:]
		if len(p.line) > 0 {
			p.line = append(p.line, line...)
			line = p.line
		}
		if !p.started {
			p.started = true
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if len(line) == 0 {
			if p.hasData {
				emit(p.event, data)
			}
			p.data, p.event, p.hasData = p.data[:0], p.event[:0], false
			data, copied = p.data, true
		} else if value, ok := fieldValue(line, "data"); ok {
			switch {
			case p.hasData:
				if !copied {
					p.data = append(p.data[:0], data...)
				}
				p.data = append(append(p.data, '\n'), value...)
				data, copied = p.data, true
			case len(p.line) > 0: // the value lies in p.line, which is used again
				p.data = append(p.data[:0], value...)
				data, copied = p.data, true
			default:
				data, copied = value, false
			}
			p.hasData = true
		} else if value, ok := fieldValue(line, "event"); ok {
			p.event = append(p.event[:0], value...)
		}
		p.line = p.line[:0]
	}
	p.line = append(p.line, read...)
	if p.hasData && !copied {
		p.data = append(p.data[:0], data...)
	}
	if len(p.line)+len(p.data) > maxEvent {
		return errEventTooLong
	}
	return nil
}

// lineEnd is the index of the first LF or CR, or -1.
func lineEnd(read []byte) int {
	end := bytes.IndexByte(read, '\n')
	if end < 0 {
		return bytes.IndexByte(read, '\r')
	}
	if cr := bytes.IndexByte(read[:end], '\r'); cr >= 0 {
		return cr
	}
	return end
}

// fieldValue returns the value of line where it is the named field.
func fieldValue(line []byte, name string) (value []byte, ok bool) {
	if len(line) < len(name) || string(line[:len(name)]) != name {
		return nil, false
	}
	rest := line[len(name):]
	switch {
	case len(rest) == 0:
		return rest, true
	case rest[0] != ':':
		return nil, false
	case len(rest) > 1 && rest[1] == ' ':
		return rest[2:], true
	}
	return rest[1:], true
}
