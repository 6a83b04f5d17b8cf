package term

import (
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/colorprofile"
	"golang.org/x/term"
)

// OutIsTerminal says whether standard output is a terminal.
func (s *Streams) OutIsTerminal() bool { return isTerminal(s.rawOut) }

// ErrCanMove says whether the cursor can be moved on standard error: it is a
// terminal, and none of the kind that only takes lines.
func (s *Streams) ErrCanMove() bool { return s.ErrIsTerminal() && s.Env("TERM") != "dumb" }

// ErrText is styled text as standard error shows it, to be written there between
// cursor movements.
func (s *Streams) ErrText(text string) string {
	writer, ok := s.Err.(*colorprofile.Writer)
	if !ok {
		return text
	}
	var shown strings.Builder
	_, _ = (&colorprofile.Writer{Forward: &shown, Profile: writer.Profile}).WriteString(text)
	return shown.String()
}

// OutWriter returns standard output as it is, for cursor movements: they are no
// styling, so that --color=never does not concern them.
func (s *Streams) OutWriter() io.Writer { return s.rawOut }

// Height returns the lines of the terminal that standard output is, else 0.
func (s *Streams) Height() int {
	if file, ok := s.rawOut.(*os.File); ok {
		if _, height, err := term.GetSize(int(file.Fd())); err == nil {
			return height
		}
	}
	return 0
}
