package explain

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
)

// atHint says how a moment is written.
const atHint = "write it as 12:03 or 12:03:30 (today's, or else yesterday's), as 2026-11-30T12:03:00Z, or as -10m"

// parseAt reads a past moment: the time of a day, a whole date and time, or how
// long ago it is.
func parseAt(text string, now time.Time) (time.Time, error) {
	var at time.Time
	if ago, err := time.ParseDuration(text); err == nil && strings.HasPrefix(text, "-") {
		at = now.Add(ago)
	} else if whole, err := time.Parse(time.RFC3339, text); err == nil {
		at = whole
	} else {
		for _, layout := range []string{"15:04", "15:04:05"} {
			clock, err := time.Parse(layout, text)
			if err != nil {
				continue
			}
			local := now.Local()
			at = time.Date(local.Year(), local.Month(), local.Day(), clock.Hour(), clock.Minute(), clock.Second(), 0, local.Location())
			if at.After(now) {
				at = time.Date(local.Year(), local.Month(), local.Day()-1, clock.Hour(), clock.Minute(), clock.Second(), 0, local.Location())
			}
		}
	}
	switch {
	case at.IsZero():
		return at, failure.New(failure.Usage, atHint, "read --at: %q is no time", text)
	case at.After(now):
		return at, failure.New(failure.Usage, atHint, "read --at: %s is in the future", text)
	}
	return at, nil
}

// completeAt checks --at and --prometheus against the other flags.
func (o *options) completeAt(args []string) error {
	if o.prometheus != "" {
		switch {
		case !namedServer.MatchString(o.prometheus):
			return failure.New(failure.Usage, "write it as http://prometheus.monitoring:9090, without credentials", "read --prometheus: it is no address of a server")
		case len(o.files) > 0 || (o.atText == "" && !o.fresh):
			return failure.New(failure.Usage, "add --at TIME, or --fresh", "explain scaling: --prometheus is where the history of a cluster's TARGET is")
		}
	}
	if o.atText == "" {
		return nil
	}
	act := "explain scaling: --at "
	switch {
	case o.scans(args):
		return failure.New(failure.Usage, "give a TARGET, such as isvc/NAME", "%sis for one TARGET, or for recordings (-f)", act)
	case o.watch:
		return failure.New(failure.Usage, "leave one away", "%sis a past moment, --watch follows the present one", act)
	case o.fresh || o.external:
		return failure.New(failure.Usage, "leave one away: the triggers' queries are evaluated at that time too", "%sis a past moment, --fresh and --external-metrics read values of now", act)
	case o.record != "":
		return failure.New(failure.Usage, "record without --at: -f DIR --at TIME finds the recording", "%sis a past moment, --record saves the present one", act)
	}
	at, err := parseAt(o.atText, o.now())
	o.at = &at
	return err
}

// recordingAt finds among recordings, which lie in directories of their own
// below those that were given, the newest one that is not after a moment.
func recordingAt(paths []string, at time.Time) (string, error) {
	var best string
	var newest, oldest time.Time
	for _, path := range paths {
		candidates := []string{path}
		entries, err := os.ReadDir(path)
		if err != nil {
			return "", failure.New(failure.Usage, "--at with -f takes directories that --record wrote", "read %s: %w", path, pathCause(err))
		}
		for _, entry := range entries {
			if entry.IsDir() {
				candidates = append(candidates, filepath.Join(path, entry.Name()))
			}
		}
		for _, candidate := range candidates {
			recording, err := readRecording([]string{candidate})
			if err != nil {
				return "", failure.New(failure.Usage, "", "read %s: %w", candidate, err)
			}
			if recording == nil {
				continue
			}
			if oldest.IsZero() || recording.ReadAt.Before(oldest) {
				oldest = recording.ReadAt
			}
			if !recording.ReadAt.After(at) && (best == "" || recording.ReadAt.After(newest)) {
				best, newest = candidate, recording.ReadAt
			}
		}
	}
	switch {
	case oldest.IsZero():
		return "", failure.New(failure.Usage, "--record DIR writes one", "find a recording: there is none in %s", strings.Join(paths, ", "))
	case best == "":
		return "", failure.New(failure.NotFound, "the first one is of "+oldest.UTC().Format(time.RFC3339), "find a recording of %s or before: there is none in %s", at.UTC().Format(time.RFC3339), strings.Join(paths, ", "))
	}
	return best, nil
}

// fetchPast reads the chains as they are, and puts what Prometheus scraped of a
// past moment in the place of what changes.
func (o *options) fetchPast(ctx context.Context) (inputs, error) {
	in, err := o.fetchCluster(ctx)
	if err != nil {
		return in, err
	}
	act := "explain " + in.target + " at " + o.at.UTC().Format(time.RFC3339)
	servers, end, err := o.servers(in.raw)
	if err != nil {
		return in, err
	}
	defer end()
	now := in.at
	in.at = moment{source: sourcePrometheus, period: now.period, ahead: now.ahead, since: now.since}
	for i, link := range in.chains {
		if link.HPA == nil {
			return in, failure.New(failure.NotFound, "recordings (-f DIR --at TIME) explain such a moment", "%s: %s %s has no HPA now, so what scaled it then is not known", act, link.Target.Kind, link.Target.Name)
		}
		reader, source, err := o.historySource(ctx, servers, link)
		if err != nil {
			return in, failure.New(failure.Failed, "name the server with --prometheus URL", "%s: %w", act, err)
		}
		then := past{link: link, at: *o.at, now: now.time, period: now.sync()}
		span := recallSpan(hpa.FromObject(link.HPA, hpa.Range{}, hpa.Range{}, hpa.Version{}, *o.at), now)
		if o.history {
			span = max(span, historySpan)
		}
		then.until = o.at.Add(2*then.period + staleness)
		if then.until.After(now.time) {
			then.until = now.time
		}
		if then.scraped, err = readScraped(ctx, reader, source, link, span+staleness+then.until.Sub(*o.at), then.until); err != nil {
			return in, failure.New(failure.Failed, "name the server of kube-state-metrics with --prometheus URL; recordings (-f DIR --at TIME) need none", "%s: %w", act, err)
		}
		if err := then.locate(source.Address.Host); err != nil {
			return in, failure.New(failure.NotFound, "it may be older than what the server keeps", "%s: %w", act, err)
		}
		then.read(ctx, o, servers, reader, source, &in)
		in.chains[i] = then.link
		if in.at.time.IsZero() || then.scrape.After(in.at.time) {
			in.at.time = then.scrape
		}
		in.at.slack = max(in.at.slack, then.period+max(2*time.Second, then.period/5)+in.at.time.Sub(then.scrape))
		in.then = append(in.then, then)
	}
	if in.at.since != nil && in.at.since.After(in.at.time) {
		in.at.since = nil
		in.unreadPast("lease", "the HPA controller has started again since: what it remembered then is bounded only by what was scraped")
	}
	for _, then := range in.then {
		version, _ := hpa.ParseVersion(in.kubernetes)
		input := hpa.FromObject(then.link.HPA, hpa.Range{}, hpa.Range{}, version, then.scrape)
		in.at.remember(then.link, then.scraped.statuses(input, then.period))
	}
	in.unreadPast("pods", "which pods ran, and which were Ready, is known by their number only")
	return in, nil
}

// unreadPast notes, once, what of a past moment cannot be known.
func (in *inputs) unreadPast(input, message string) {
	if !slices.ContainsFunc(in.unread, func(u record.UnreadInput) bool { return u.Message == message }) {
		in.unread = append(in.unread, record.UnreadInput{Input: input, Namespace: in.namespace, Message: message})
	}
}

// addPast adds to each chain what the triggers' queries gave for the time, and
// what happened to the size afterwards.
func addPast(document *record.ScalingExplanation, in inputs) {
	for i, then := range in.then {
		out := &document.Chains[i]
		out.Past = &record.ScalingPast{Asked: then.at.UTC(), Values: then.values, Then: then.next()}
		if out.Decision != nil && in.at.taken[then.link.HPA.Namespace+"/"+then.link.HPA.Name] {
			out.Decision.Exact = false
			out.Decision.HiddenInputs = append(out.Decision.HiddenInputs, "the values that the controller saw: those that the queries gave for the time are taken")
		}
	}
}
