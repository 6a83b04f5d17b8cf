package explain

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// hostile is what a server must not be able to do to a terminal: colours and a
// bell, a title, a line of its own, an order of its own, a hidden character.
const hostile = "\x1b[31m\a\x1b]0;x\x07\r\nDECISION forged\u202e\u200b"

// TestHostile puts control characters into every text of a document, one after
// the other, and looks whether one of them gets through to the terminal.
func TestHostile(t *testing.T) {
	fields := 0
	for _, file := range []string{"window-up", "one-broken", "cooldown", "composite", "fallback", "two-hpas", "paused", "zero", "all-broken"} {
		path := "testdata/lab/" + file + ".yaml"
		explanation := document(t, "-f", path, "--set", "max=9", "--history")
		for _, text := range texts(explanation.Chains) {
			was := text.String()
			if slices.Contains([]string{record.ChainScaled, record.ChainZero, record.ChainPaused}, was) {
				// A state is the model's own word.
				continue
			}
			text.SetString(was + hostile)
			fields++
			var shown strings.Builder
			if err := render(&shown, explanation, 40); err != nil {
				t.Fatal(err)
			}
			chain := explanation.Chains[0]
			severity, summary, _ := judge(chain)
			scan := record.ScalingScan{Items: []record.ScannedChain{{Namespace: "a" + hostile, Target: scannedTarget(chain), Severity: severity, Summary: summary, Chain: record.ScalingChain{Role: chain.Role}}}}
			if err := renderScan(&shown, scan, 0); err != nil {
				t.Fatal(err)
			}
			lookup(t, file, shown.String()+decisionLine(chain))
			text.SetString(was)
		}
	}
	if fields < 400 {
		t.Errorf("only %d texts", fields)
	}
}

// lookup finds what must not be there; bold and colours of our own are.
func lookup(t *testing.T, file, text string) {
	t.Helper()
	for _, bad := range []string{"\x1b[31m\a", "\x1b]", "\a", "\r", "\u202e", "\u200b", "\nDECISION forged"} {
		if at := strings.Index(text, bad); at >= 0 {
			t.Fatalf("%s: %q in %q", file, bad, text[max(0, at-60):min(len(text), at+60)])
		}
	}
}

// texts are all strings of chains; each can be set.
func texts(chains []record.ScalingChain) []reflect.Value {
	var found []reflect.Value
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer, reflect.Interface:
			if !v.IsNil() {
				walk(v.Elem())
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					walk(v.Field(i))
				}
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.String:
			found = append(found, v)
		}
	}
	walk(reflect.ValueOf(chains))
	return found
}

// TestHostileFindings: names in saved objects reach the texts of findings.
func TestHostileFindings(t *testing.T) {
	yaml := manifest(atLeast1+"  advanced: {scalingModifiers: {formula: \"a\\e[31m\\a + b\", target: \"1\\e[2J\"}}\n", trigger(queue, "2", `, name: "a\e[31m"`))
	stdout, stderr, err := run(t, yaml, "-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	if i := strings.IndexFunc(stdout+stderr, func(r rune) bool { return r == '\x1b' || r == '\a' }); i >= 0 {
		t.Errorf("got %q", stdout)
	}
	if !slices.ContainsFunc(strings.Split(stdout, "\n"), func(line string) bool { return strings.Contains(line, "hpa-refused") }) {
		t.Errorf("got %s", stdout)
	}
}
