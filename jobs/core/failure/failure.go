// Package failure is the one form of error that a user meets: what was tried,
// why it did not work, what to do about it, and the exit code that a script
// sees. Both the plugin and the in-cluster jobs speak it.
package failure

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// Kind says what sort of failure it is, and with that the exit code of the
// process. The numbers are part of the command line's contract.
type Kind int

const (
	// Failed is a failure without a kind of its own.
	Failed Kind = 1
	// Usage is input that cannot be used: flags, arguments, files. Nothing
	// was started. In a Job it marks an error that a retry cannot mend.
	Usage Kind = 2
	// Differs means that the work was done and the answer is "no": objects
	// differ, an objective is not met.
	Differs Kind = 3
	// Denied means that the credentials do not allow the act.
	Denied Kind = 4
	// NotFound means that a named object, or the API it belongs to, is absent.
	NotFound Kind = 5
	// Unreachable means that a server did not answer.
	Unreachable Kind = 6
	// Timeout means that the time given with a flag ran out.
	Timeout Kind = 124
	// Interrupted means that the user stopped it (Ctrl-C).
	Interrupted Kind = 130
)

// Error is a failure with a kind and, where there is one, a hint: the exact
// command or flag that mends it.
type Error struct {
	Kind Kind
	Hint string
	Err  error
}

// New makes an Error whose text is formatted as fmt.Errorf does, %w included.
func New(kind Kind, hint, format string, args ...any) *Error {
	return &Error{Kind: kind, Hint: hint, Err: fmt.Errorf(format, args...)}
}

// Wrap puts `act object:` in front of err and keeps its kind and hint.
func Wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the first Error in err's chain. A cancelled
// context is Interrupted, a passed deadline is Timeout, anything else Failed.
func KindOf(err error) Kind {
	var failure *Error
	switch {
	case errors.As(err, &failure):
		return failure.Kind
	case errors.Is(err, context.Canceled):
		return Interrupted
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	}
	return Failed
}

// HintOf returns the hint of the first Error in err's chain, or "".
func HintOf(err error) string {
	var failure *Error
	if errors.As(err, &failure) {
		return failure.Hint
	}
	return ""
}

// ExitCode returns the process exit code for err: 0 for nil.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	return int(KindOf(err))
}

// Text renders err as the user sees it: one `error:` line and, where known, a
// `hint:` line for each line of the hint. Server-supplied text can be part of
// an error, so control characters do not pass.
func Text(err error) string {
	var text strings.Builder
	fmt.Fprintf(&text, "error: %s\n", Clean(err.Error()))
	for line := range strings.Lines(HintOf(err)) {
		fmt.Fprintf(&text, "hint: %s\n", Clean(strings.TrimSuffix(line, "\n")))
	}
	return text.String()
}

// Clean makes a string from a server fit for one line of a terminal: white
// space of any kind becomes one space, control and other invisible formatting
// characters (escape sequences, bidirectional overrides) are dropped.
func Clean(s string) string {
	var clean strings.Builder
	space := false
	for _, r := range s {
		switch {
		case unicode.IsSpace(r):
			space = clean.Len() > 0
			continue
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == unicode.ReplacementChar:
			continue
		}
		if space {
			clean.WriteByte(' ')
			space = false
		}
		clean.WriteRune(r)
	}
	return clean.String()
}
