package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// renderNow puts the controller's last sync and fresh values side by side.
func renderNow(text *strings.Builder, c record.ScalingChain, width int) error {
	if c.Now == nil {
		return nil
	}
	fmt.Fprintf(text, "\n%s read at %s from %s\n", term.Bold("NOW"), clockText(c.Now.ReadAt), askedText(c.Now.Values))
	for _, value := range c.Now.Values {
		name := failure.Clean(value.Label)
		if value.Index != nil {
			name = fmt.Sprintf("s%d %s", *value.Index, name)
		}
		line := fmt.Sprintf("  %s is not fresh: %s", name, failure.Clean(value.Error))
		if value.Value != nil {
			line = fmt.Sprintf("  %s is fresh: %s", name, number(*value.Value))
		}
		if value.Pods != nil && value.Value != nil {
			line += " in all of " + plural(*value.Pods, "pod", "pods")
		}
		if value.Via == "port-forward" && value.Value != nil {
			line += ", by port-forward"
		}
		if value.Note != "" {
			line += "; " + failure.Clean(value.Note)
		}
		text.WriteString(line + "\n")
	}
	if c.Now.Decision == nil {
		return nil
	}
	return sideBySide(text, c, c.Now.Decision, width, "LAST SYNC", "NOW")
}

// askedText names those who were asked.
func askedText(values []record.FreshValue) string {
	servers, apis := false, []string{}
	for _, value := range values {
		switch {
		case !strings.Contains(value.Via, "."):
			servers = servers || value.Via != ""
		case !slices.Contains(apis, value.Via):
			apis = append(apis, value.Via)
		}
	}
	if servers || len(apis) == 0 {
		apis = append([]string{"the triggers' own servers"}, apis...)
	}
	text := strings.Join(apis, " and ")
	if slices.Contains(apis, groupExternal) {
		text += ", which is not passive: KEDA asks its sources for it, and counts failures"
	}
	return text
}
