package process

import (
	"io"
	"os"
	"strings"
)

const (
	tailLines = 15
	tailBytes = 16 << 10
)

// Tail returns the last lines of a file, each indented by two spaces, or the
// empty string when it cannot be read.
func Tail(path string, lines int) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	if _, err := f.Seek(max(0, info.Size()-tailBytes), io.SeekStart); err != nil {
		return ""
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return ""
	}
	text := strings.TrimRight(string(data), "\n")
	if text == "" {
		return ""
	}
	all := strings.Split(text, "\n")
	all = all[max(0, len(all)-lines):]
	return "  " + strings.Join(all, "\n  ")
}
