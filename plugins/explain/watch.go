package explain

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
)

const (
	// repaintEvery is the shortest time between two looks at the objects.
	repaintEvery = 200 * time.Millisecond
	// lookEvery is the time after which everything is read again without a
	// change that a watch reported: events and pods are not watched.
	lookEvery = 5 * time.Second
)

// runWatch explains again on every change, until ctx ends: that is how a person
// stops it, and no failure.
func (o *options) runWatch(ctx context.Context) error {
	look, chains, err := o.look(ctx)
	if err != nil {
		return err
	}
	inner, cancel := context.WithCancel(ctx)
	changes, wait, err := o.factory.WatchChains(inner, chains)
	if err != nil {
		cancel()
		return err
	}
	defer func() {
		cancel()
		wait()
	}()
	show := o.lines()
	if o.out.Human() && o.streams.OutIsTerminal() {
		show = o.paint()
	}
	for trouble := ""; ; {
		if err := show(look, trouble); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changes:
		case <-time.After(lookEvery):
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(repaintEvery):
		}
		next, _, err := o.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			trouble = err.Error()
		default:
			look, trouble = next, ""
		}
	}
}

// look reads and explains once.
func (o *options) look(ctx context.Context) (record.ScalingExplanation, []chain.Chain, error) {
	in, err := o.fetchCluster(ctx)
	if err != nil {
		return record.ScalingExplanation{}, nil, err
	}
	document, err := o.explained(ctx, in)
	return document, in.chains, err
}

// show shows an explanation; trouble says why there is no newer one.
type show = func(document record.ScalingExplanation, trouble string) error

// lines writes one line, or one document, for each change of a decision.
func (o *options) lines() show {
	last, said := map[string]string{}, ""
	return func(document record.ScalingExplanation, trouble string) error {
		if trouble != said {
			if said = trouble; trouble != "" {
				o.streams.Warn("%s", trouble)
			}
		}
		for _, c := range document.Chains {
			key, line := linkKey(c), decisionLine(c)
			if last[key] == line {
				continue
			}
			last[key] = line
			if !o.out.Human() {
				return o.out.Print(o.streams.Out, document, nil)
			}
			at := ""
			if document.AsOf.Time != nil {
				at = document.AsOf.Time.Format(time.RFC3339)
			}
			if _, err := fmt.Fprintf(o.streams.Out, "%s  %s  %s\n", at, scannedTarget(c), line); err != nil {
				return err
			}
		}
		return nil
	}
}

// decisionLine is a decision in a line, without what changes all the time.
func decisionLine(c record.ScalingChain) string {
	head, _ := headline(c)
	parts := []string{countText(c.Replicas.Spec) + " of " + boundsText(c.Replicas), head}
	for _, t := range c.Triggers {
		if t.Winner {
			parts = append(parts, fmt.Sprintf("%s asks for %s", triggerName(t), rangeText(t.Proposes)))
		}
	}
	if c.Check != nil && c.Check.Compared && !c.Check.Agrees {
		parts = append(parts, "disagrees with the controller")
	}
	return failure.Clean(strings.Join(parts, "; "))
}

// paint repaints in place where the text changed, and leaves what was on the
// terminal before.
func (o *options) paint() show {
	painted, last := 0, ""
	return func(document record.ScalingExplanation, trouble string) error {
		width, height := o.streams.Width(), o.streams.Height()
		var text strings.Builder
		if err := render(&text, document, width); err != nil {
			return err
		}
		if trouble != "" {
			fmt.Fprintf(&text, "\nNo newer state: %s\n", failure.Clean(trouble))
		}
		frame := text.String()
		if frame == last {
			return nil
		}
		last = frame
		lines := frameLines(frame, width, height)
		if painted > 0 {
			if _, err := fmt.Fprintf(o.streams.OutWriter(), "\x1b[%dA\r\x1b[J", painted); err != nil {
				return err
			}
		}
		painted = len(lines)
		_, err := fmt.Fprint(o.streams.Out, strings.Join(lines, "\n")+"\n")
		return err
	}
}

// frameLines cuts a frame to the terminal: the cursor can go back over lines
// that are on the screen only, and a line that wraps counts for two.
func frameLines(frame string, width, height int) []string {
	lines := strings.Split(strings.TrimSuffix(frame, "\n"), "\n")
	if width > 0 {
		for i := range lines {
			lines[i] = cutStyled(lines[i], width)
		}
	}
	if height > 4 && len(lines) > height-1 {
		hidden := len(lines) - (height - 2)
		lines = append(lines[:height-2], fmt.Sprintf("... %d more lines", hidden))
	}
	return lines
}
