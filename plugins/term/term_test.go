package term

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/charmbracelet/colorprofile"
)

// TestColor: the flag comes before NO_COLOR, that before CLICOLOR_FORCE, that
// before what the stream is.
func TestColor(t *testing.T) {
	const red, plain = "\x1b[31mx\x1b[m", "x"
	for name, test := range map[string]struct {
		mode    ColorMode
		environ []string
		want    string
	}{
		"not a terminal":                {ColorAuto, nil, plain},
		"a terminal's type is not one":  {ColorAuto, []string{"TERM=xterm-256color", "COLORTERM=truecolor"}, plain},
		"CLICOLOR_FORCE":                {ColorAuto, []string{"CLICOLOR_FORCE=1"}, red},
		"CLICOLOR_FORCE=0":              {ColorAuto, []string{"CLICOLOR_FORCE=0"}, plain},
		"NO_COLOR is stronger":          {ColorAuto, []string{"NO_COLOR=1", "CLICOLOR_FORCE=1"}, plain},
		"NO_COLOR of any value":         {ColorAuto, []string{"NO_COLOR=0", "CLICOLOR_FORCE=1"}, plain},
		"NO_COLOR=false":                {ColorAuto, []string{"NO_COLOR=false", "CLICOLOR_FORCE=1"}, plain},
		"an empty NO_COLOR is none":     {ColorAuto, []string{"NO_COLOR=", "CLICOLOR_FORCE=1"}, red},
		"--color always":                {ColorAlways, nil, red},
		"--color always over NO_COLOR":  {ColorAlways, []string{"NO_COLOR=1"}, red},
		"--color always, dumb terminal": {ColorAlways, []string{"TERM=dumb"}, red},
		"--color never":                 {ColorNever, []string{"CLICOLOR_FORCE=1", "TERM=xterm"}, plain},
	} {
		t.Run(name, func(t *testing.T) {
			var out, err bytes.Buffer
			streams := New(nil, &out, &err, test.environ)
			streams.SetColor(test.mode)
			for _, w := range []interface{ Write([]byte) (int, error) }{streams.Out, streams.Err} {
				if _, err := w.Write([]byte(Bad("x"))); err != nil {
					t.Fatal(err)
				}
			}
			if out.String() != test.want || err.String() != test.want {
				t.Errorf("standard output %q, standard error %q, want %q", out.String(), err.String(), test.want)
			}
		})
	}
}

// TestColorOfATerminal asks the rule itself: no test has a terminal of its own.
func TestColorOfATerminal(t *testing.T) {
	for name, test := range map[string]struct {
		environ []string
		want    colorprofile.Profile
	}{
		"plain":    {[]string{"TERM=xterm"}, colorprofile.ANSI},
		"dumb":     {[]string{"TERM=dumb"}, colorprofile.NoTTY},
		"NO_COLOR": {[]string{"TERM=xterm", "NO_COLOR=no"}, colorprofile.NoTTY},
	} {
		t.Run(name, func(t *testing.T) {
			streams := New(nil, &bytes.Buffer{}, &bytes.Buffer{}, append(test.environ, "TTY_FORCE=1"))
			if got := streams.Out.(*colorprofile.Writer).Profile; got != test.want {
				t.Errorf("profile %v, want %v", got, test.want)
			}
		})
	}
}

func TestWidth(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for columns, want := range map[string]int{"": 0, "120": 120, "0": 0, "-1": 0, "wide": 0} {
		streams := New(nil, file, &bytes.Buffer{}, []string{"COLUMNS=" + columns})
		if streams.Width() != want || streams.ErrWidth() != want {
			t.Errorf("COLUMNS=%s: %d and %d, want %d", columns, streams.Width(), streams.ErrWidth(), want)
		}
	}
	if streams := New(nil, file, file, nil); streams.ErrIsTerminal() {
		t.Error("a file is taken for a terminal")
	}
}

func TestWords(t *testing.T) {
	var out, errs bytes.Buffer
	streams := New(nil, &out, &errs, []string{"A=1=2", "AB=3", "A=4"})
	streams.Say("at %s\x1b[2J\nnext", "once")
	streams.Warn("%d of\tthem", 2)
	if want := "at once[2J next\nwarning: 2 of them\n"; errs.String() != want || out.Len() != 0 {
		t.Errorf("standard error %q, want %q; standard output %q", errs.String(), want, out.String())
	}
	if streams.Env("A") != "1=2" || streams.Env("B") != "" || streams.Env("") != "" {
		t.Errorf("environment %q %q", streams.Env("A"), streams.Env("B"))
	}
}
