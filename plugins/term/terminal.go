package term

import (
	"io"
	"os"

	"golang.org/x/term"
)

// OutIsTerminal says whether standard output is a terminal.
func (s *Streams) OutIsTerminal() bool { return isTerminal(s.rawOut) }

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
