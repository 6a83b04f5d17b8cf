package explain

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
)

// inputs are all that an explanation is made of.
type inputs struct {
	namespace, target string
	chains            []chain.Chain
	kubernetes        string
	unread            []record.UnreadInput
	at                moment
	settings          []setting
	// then are the chains at a past moment, in the order of chains; nil for now.
	then []past
	// servers are the way to the triggers' servers; nil unless they are asked.
	servers *servers
	// raw are all objects as they were read from a cluster.
	raw []unstructured.Unstructured
}

// explain is the whole explanation as a pure function of its inputs.
func explain(in inputs) record.ScalingExplanation {
	version, _ := hpa.ParseVersion(in.kubernetes)
	document := record.ScalingExplanation{
		TypeMeta:          record.Meta(record.KindScalingExplanation),
		Namespace:         in.namespace,
		Target:            in.target,
		AsOf:              in.at.record(),
		KubernetesVersion: in.kubernetes,
		Chains:            []record.ScalingChain{},
		Unread:            []record.UnreadInput{},
	}
	document.Unread = append(document.Unread, in.unread...)
	if version.Known() && !version.Modelled() {
		document.Unread = append(document.Unread, record.UnreadInput{
			Input: "version", Resource: "/version",
			Message: "Kubernetes " + version.String() + " is not among the versions that the model was made from: the nearest is taken",
		})
	}
	for _, link := range in.chains {
		if link.HPA != nil {
			// KEDA stamps its HPAs with its own version.
			document.KEDAVersion = cmp.Or(document.KEDAVersion, kedaVersion(link.HPA.Labels))
		}
		document.KEDAVersion = cmp.Or(document.KEDAVersion, link.KEDAVersion)
		document.Chains = append(document.Chains, explainChain(link, version, in.at, len(in.chains) > 1))
	}
	lintSiblings(in.chains, document.Chains)
	document.Unread = slices.DeleteFunc(document.Unread, func(u record.UnreadInput) bool { return u.Input == "lease" && !hides(document.Chains) })
	return document
}

// hides says whether something of the controller's memory leaves a decision
// inexact: else nobody misses what bounds that memory.
func hides(chains []record.ScalingChain) bool {
	return slices.ContainsFunc(chains, func(c record.ScalingChain) bool {
		return c.Decision != nil && (len(c.Decision.HiddenInputs) > 0 || !c.Decision.Exact)
	})
}

func kedaVersion(labels map[string]string) string {
	if labels["app.kubernetes.io/managed-by"] != "keda-operator" {
		return ""
	}
	return labels["app.kubernetes.io/version"]
}

func explainChain(link chain.Chain, version hpa.Version, at moment, several bool) record.ScalingChain {
	out := record.ScalingChain{
		Namespace:   link.Target.Namespace,
		Links:       linksOf(link),
		State:       stateOf(link),
		Replicas:    countsOf(link),
		LastChange:  lastChangeOf(link),
		Credentials: credentialsOf(link.ScaledObject),
		Triggers:    []record.ScalingTrigger{},
		Warnings:    []record.Finding{},
	}
	if several && link.Workload != nil {
		out.Role = link.Workload.Role
	}
	edited := link.HPA != nil && stale(link, at)
	if link.HPA != nil {
		decision, observed := decide(link, version, at)
		check := hpa.Compare(decision, observed)
		if at.source == sourcePrometheus {
			check = hpa.Compare(decision, scrapedOf(decision, observed))
			observed.Able = ""
		}
		if edited {
			check = hpa.Compare(decision, hpa.Observed{})
		}
		out.Triggers = triggersOf(link, decision, check)
		if out.State != record.ChainNotSynced {
			out.Decision = decisionOf(decision, check, observed, at)
			out.Check = checkOf(check, observed)
			if unscalable(out.Check) {
				holdUnlooked(&out)
			}
			if edited {
				out.Decision.Exact = false
				out.Decision.HiddenInputs = append(out.Decision.HiddenInputs, "a sync with the HPA's spec as it is now")
			}
		}
	} else {
		out.Triggers = idleTriggers(link, version)
	}
	if at.source == sourcePrometheus {
		// Warnings, and what KEDA does, are of today.
		return out
	}
	out.Pods = podsIn(link.Pods)
	out.KEDA = kedaLoopOf(link, at)
	out.Warnings = append(out.Warnings, lint(link, out)...)
	if edited {
		out.Warnings = append(out.Warnings, record.Finding{
			ID: idStale, Severity: record.SeverityInfo, Fix: "run this again in " + shortDuration(at.slack.Round(time.Second)),
			Message: "the HPA was edited after the controller's last sync, so its status is not compared",
		})
	}
	return out
}

// holdUnlooked is the outcome of a sync that ended before the metrics: what the
// status shows of them is of an earlier one.
func holdUnlooked(out *record.ScalingChain) {
	d := out.Decision
	d.Raw, d.Stabilization, d.RateLimit = nil, nil, nil
	d.Desired, d.Exact, d.HiddenInputs = record.CountRange{Low: d.From, High: &d.From}, true, []string{}
	for i := range out.Triggers {
		out.Triggers[i].Winner = false
	}
}

// decide carries out the sync that the HPA's status tells of.
func decide(link chain.Chain, version hpa.Version, at moment) (hpa.Decision, hpa.Observed) {
	observed := hpa.ObservedIn(link.HPA)
	status, ready := replicasAtSync(link, at)
	in := hpa.FromObject(link.HPA, status, ready, version, at.time)
	in.Slack = at.slack
	if podsAtRest(link, at) {
		in.Pods = link.Pods
	}
	if at.time.IsZero() {
		// Without a time the pods have been as they are for long.
		in.Slack = 0
		for i := range in.Pods {
			if long := newestOf(&in.Pods[i]).Add(24 * time.Hour); long.After(in.Now) {
				in.Now = long
			}
		}
	}
	in.MemorySince = at.since
	in.Rescales = in.KnownRescales(rescalesOf(link), observed)
	decision := hpa.Decide(in)
	if in.Recalled = recall(in, link, at); in.Recalled == nil {
		return decision, observed
	}
	recalled := hpa.Decide(in)
	if hpa.Compare(decision, observed).Agrees() && !hpa.Compare(recalled, observed).Agrees() {
		// What was scraped is not what the controller did.
		return decision, observed
	}
	return recalled, observed
}

// scrapedOf is what is known of what the controller wrote in a sync of which the
// sizes were scraped: no reason of a condition.
func scrapedOf(d hpa.Decision, observed hpa.Observed) hpa.Observed {
	observed.Able, observed.AbleTrue = string(hpa.SucceededGetScale), true
	observed.Active = string(d.Active)
	observed.ActiveTrue = d.Blocking == hpa.NotBlocked || d.Blocking == hpa.MaybeBlocked
	return observed
}

// sizeEvents reads the HPA's rescales from its events; nil stays nil: unknown.
func sizeEvents(events []corev1.Event) []hpa.SizeEvent {
	if events == nil {
		return nil
	}
	sizes := []hpa.SizeEvent{}
	for _, event := range events {
		if event.Reason != "SuccessfulRescale" {
			continue
		}
		size, reason, ok := hpa.ParseRescale(event.Message)
		if !ok {
			continue
		}
		sizes = append(sizes, hpa.SizeEvent{Time: eventTime(event), Count: eventCount(event), Size: size, Reason: reason})
	}
	return sizes
}

func eventTime(event corev1.Event) time.Time {
	switch {
	case event.Series != nil && !event.Series.LastObservedTime.IsZero():
		return event.Series.LastObservedTime.Time
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp.Time
	case !event.EventTime.IsZero():
		return event.EventTime.Time
	}
	return event.CreationTimestamp.Time
}

func eventCount(event corev1.Event) int32 {
	if event.Series != nil {
		return event.Series.Count
	}
	return max(event.Count, 1)
}

func linksOf(link chain.Chain) []record.ChainLink {
	links := []record.ChainLink{}
	for _, ref := range link.Links() {
		links = append(links, record.ChainLink{APIVersion: strings.TrimSuffix(ref.APIVersion, "/"), Kind: ref.Kind, Name: ref.Name})
	}
	return links
}
