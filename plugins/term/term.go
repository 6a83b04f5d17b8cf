// Package term is the terminal as commands see it: the three streams, whether
// each is a terminal, how wide it is, and whether colour may be used. Standard
// output carries data only; progress, warnings and hints go to standard error.
package term

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/charmbracelet/colorprofile"
	"golang.org/x/term"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// ColorMode is the value of --color.
type ColorMode string

const (
	ColorAuto   ColorMode = "auto"
	ColorAlways ColorMode = "always"
	ColorNever  ColorMode = "never"
)

// ColorModes lists the values of --color.
func ColorModes() []string {
	return []string{string(ColorAuto), string(ColorAlways), string(ColorNever)}
}

// Streams are the streams of one run of a command. Styled text (lipgloss) may
// be written to Out and Err always: what the stream cannot show is removed on
// the way.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer

	rawOut, rawErr io.Writer
	environ        []string
}

// New makes the streams of a process from its standard streams and
// environment, with ColorAuto.
func New(in io.Reader, out, err io.Writer, environ []string) *Streams {
	streams := &Streams{In: in, rawOut: out, rawErr: err, environ: environ}
	streams.SetColor(ColorAuto)
	return streams
}

// SetColor applies --color to both output streams. Order: the flag, then
// NO_COLOR (any non-empty value), then CLICOLOR_FORCE, then what the stream is.
func (s *Streams) SetColor(mode ColorMode) {
	s.Out = s.writer(s.rawOut, mode)
	s.Err = s.writer(s.rawErr, mode)
}

func (s *Streams) writer(raw io.Writer, mode ColorMode) io.Writer {
	writer := &colorprofile.Writer{Forward: raw}
	switch {
	case mode == ColorNever:
		writer.Profile = colorprofile.NoTTY
	case mode == ColorAlways:
		writer.Profile = max(colorprofile.Env(s.environ), colorprofile.ANSI)
	// The library reads NO_COLOR as a boolean; the convention is any value.
	case s.Env("NO_COLOR") != "":
		writer.Profile = colorprofile.NoTTY
	default:
		writer.Profile = colorprofile.Detect(raw, s.environ)
	}
	return writer
}

// ErrIsTerminal says whether standard error is a terminal.
func (s *Streams) ErrIsTerminal() bool { return isTerminal(s.rawErr) }

// ErrWriter returns standard error as it is, for in-place progress that must
// know it writes to a terminal.
func (s *Streams) ErrWriter() io.Writer { return s.rawErr }

// Width returns the width of standard output in columns: that of the terminal,
// else $COLUMNS, else 0, which means that lines may be of any length.
func (s *Streams) Width() int { return s.width(s.rawOut) }

// ErrWidth is Width for standard error.
func (s *Streams) ErrWidth() int { return s.width(s.rawErr) }

func (s *Streams) width(w io.Writer) int {
	if file, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return width
		}
	}
	if columns, err := strconv.Atoi(s.Env("COLUMNS")); err == nil && columns > 0 {
		return columns
	}
	return 0
}

// Warn writes one `warning:` line to standard error.
func (s *Streams) Warn(format string, args ...any) {
	fmt.Fprintf(s.Err, "warning: %s\n", failure.Clean(fmt.Sprintf(format, args...)))
}

// Say writes one line of progress to standard error.
func (s *Streams) Say(format string, args ...any) {
	fmt.Fprintf(s.Err, "%s\n", failure.Clean(fmt.Sprintf(format, args...)))
}

// Env returns the value of an environment variable, or "".
func (s *Streams) Env(name string) string {
	for _, entry := range s.environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
