package openai

// chunk is what a measurement needs of one event of a stream, or of a whole
// reply: the parts of choice 0, the usage, and an error in place of them. Raw
// fields are slices of the event.
type chunk struct {
	// output is raw text, content, refusal or tool-call argument; reasoning is raw
	// reasoning_content or reasoning. Either makes the chunk token-bearing where
	// it is a string that is not empty.
	output, reasoning []byte
	// tokenIDs is the number of token ids that came with the text, -1 for none.
	tokenIDs int
	// finish is the raw finish_reason, nil for none.
	finish []byte
	usage  usage
	fault  *fault
}

// usage holds the server's token counts; -1 where unknown.
type usage struct {
	prompt, completion, cached int
}

// fault is an error that the server put into a reply with status 200.
type fault struct {
	message, code string
}

func (c *chunk) hasOutput() bool    { return isText(c.output) }
func (c *chunk) hasReasoning() bool { return isText(c.reasoning) }

// parseChunk reads an event's data. Members of unexpected types are left out;
// only a syntax error is an error.
func parseChunk(data []byte, c *chunk) error {
	*c = chunk{tokenIDs: -1, usage: usage{-1, -1, -1}}
	s := scanner{data: data}
	if s.peek() != '{' {
		if err := s.skip(); err != nil {
			return err
		}
		return s.end()
	}
	var top fault
	objectIsError := false
	err := s.object(func(key []byte) (err error) {
		switch string(key) {
		case "choices":
			return s.choices(c)
		case "usage":
			return s.usage(&c.usage)
		case "error":
			c.fault, err = s.fault()
		case "object":
			// vLLM before 0.10 puts the error's members at the top.
			raw, err := s.raw()
			objectIsError = string(raw) == `"error"`
			return err
		case "message":
			top.message, err = s.text()
		case "code":
			top.code, err = s.text()
		default:
			err = s.skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	if objectIsError && c.fault == nil {
		c.fault = &top
	}
	return s.end()
}

// choices reads the first choice whose index is 0; a choice without an index
// counts by its place.
func (s *scanner) choices(c *chunk) error {
	c.output, c.reasoning, c.finish, c.tokenIDs = nil, nil, nil, -1
	if s.peek() != '[' {
		return s.skip()
	}
	found := false
	return s.array(func(place int) error {
		if s.peek() != '{' {
			return s.skip()
		}
		one := chunk{tokenIDs: -1}
		var text, delta chunk
		err := s.object(func(key []byte) (err error) {
			switch string(key) {
			case "index":
				raw, err := s.raw()
				if n, ok := count(raw); ok {
					place = n
				}
				return err
			case "text":
				text.output, err = s.raw()
			case "delta", "message":
				err = s.delta(&delta)
			case "finish_reason":
				one.finish, err = s.raw()
				if !isText(one.finish) {
					one.finish = nil
				}
			case "token_ids":
				one.tokenIDs, err = s.length()
			default:
				err = s.skip()
			}
			return err
		})
		if err != nil || found || place != 0 {
			return err
		}
		found = true
		c.output, c.reasoning = firstText(text.output, delta.output), delta.reasoning
		c.finish, c.tokenIDs = one.finish, one.tokenIDs
		return nil
	})
}

// delta reads the parts of a chat message that can carry tokens.
func (s *scanner) delta(c *chunk) error {
	*c = chunk{}
	if s.peek() != '{' {
		return s.skip()
	}
	var content, refusal, calls, long, short []byte
	err := s.object(func(key []byte) (err error) {
		switch string(key) {
		case "content":
			content, err = s.raw()
		case "refusal":
			refusal, err = s.raw()
		case "reasoning_content":
			long, err = s.raw()
		case "reasoning":
			short, err = s.raw()
		case "tool_calls":
			calls, err = s.toolCalls()
		default:
			err = s.skip()
		}
		return err
	})
	c.output = firstText(content, refusal, calls)
	c.reasoning = firstText(long, short)
	return err
}

// toolCalls returns the first raw function arguments that are not empty.
func (s *scanner) toolCalls() (arguments []byte, err error) {
	if s.peek() != '[' {
		return nil, s.skip()
	}
	err = s.array(func(int) error {
		return s.member("function", func() error {
			return s.member("arguments", func() error {
				raw, err := s.raw()
				arguments = firstText(arguments, raw)
				return err
			})
		})
	})
	return arguments, err
}

// member calls value where the next value is an object with that member.
func (s *scanner) member(name string, value func() error) error {
	if s.peek() != '{' {
		return s.skip()
	}
	return s.object(func(key []byte) error {
		if string(key) == name {
			return value()
		}
		return s.skip()
	})
}

func (s *scanner) usage(u *usage) error {
	*u = usage{-1, -1, -1}
	if s.peek() != '{' {
		return s.skip()
	}
	read := func(n *int) error {
		raw, err := s.raw()
		if value, ok := count(raw); ok {
			*n = value
		}
		return err
	}
	return s.object(func(key []byte) error {
		switch string(key) {
		case "prompt_tokens":
			return read(&u.prompt)
		case "completion_tokens":
			return read(&u.completion)
		case "prompt_tokens_details":
			return s.member("cached_tokens", func() error { return read(&u.cached) })
		}
		return s.skip()
	})
}

// fault reads the value of a member error: an object, or a string that is its
// message. Anything else, such as null, is no error.
func (s *scanner) fault() (*fault, error) {
	if s.peek() != '{' {
		raw, err := s.raw()
		if err != nil || !isText(raw) {
			return nil, err
		}
		return &fault{message: string(unquote(raw))}, nil
	}
	var f fault
	err := s.object(func(key []byte) (err error) {
		switch string(key) {
		case "message":
			f.message, err = s.text()
		case "code":
			f.code, err = s.text()
		default:
			err = s.skip()
		}
		return err
	})
	return &f, err
}

// text consumes a value and returns it for people: a string's text, nothing for
// null, the JSON of anything else.
func (s *scanner) text() (string, error) {
	raw, err := s.raw()
	switch {
	case err != nil || string(raw) == "null":
		return "", err
	case raw[0] == '"':
		return string(unquote(raw)), nil
	}
	return string(raw), nil
}

// length consumes a value and returns an array's length, else -1.
func (s *scanner) length() (n int, err error) {
	if s.peek() != '[' {
		return -1, s.skip()
	}
	err = s.array(func(int) error { n++; return s.skip() })
	return n, err
}

// isText says whether a raw value is a string that is not empty.
func isText(raw []byte) bool { return len(raw) > 2 && raw[0] == '"' }

// firstText returns the first raw value that is a string and not empty.
func firstText(values ...[]byte) []byte {
	for _, raw := range values {
		if isText(raw) {
			return raw
		}
	}
	return nil
}
