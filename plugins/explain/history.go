package explain

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
)

// historySpan is how far back a history goes: events live for an hour.
const historySpan = time.Hour

// historyOf tells what happened to the size within the last hour before at,
// the oldest first.
func historyOf(link chain.Chain, at time.Time) []record.HistoryEntry {
	history := []record.HistoryEntry{}
	for _, event := range slices.Concat(link.Events, link.Related) {
		if entry, told := historyEntry(event); told {
			history = append(history, entry)
		}
	}
	for _, change := range []*record.ReplicaChange{hpaChange(link), lastChangeOf(link)} {
		// What has an event is told by that, with more.
		told := change == nil || change.Time == nil || slices.ContainsFunc(history, func(e record.HistoryEntry) bool {
			return e.Kind != record.HistoryReplicaSet && e.Kind != record.HistoryProblem && e.Time.Sub(*change.Time).Abs() <= oneWrite
		})
		if !told {
			history = append(history, writeEntry(*change))
		}
	}
	history = slices.DeleteFunc(history, func(e record.HistoryEntry) bool {
		return !at.IsZero() && (at.Sub(e.Time) > historySpan || e.Time.After(at.Add(time.Minute)))
	})
	slices.SortStableFunc(history, func(a, b record.HistoryEntry) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(order(a), order(b)))
	})
	fillFrom(history)
	return history
}

// writeEntry tells of a change that has no event.
func writeEntry(change record.ReplicaChange) record.HistoryEntry {
	entry := record.HistoryEntry{Time: *change.Time, Kind: record.HistoryWrite, By: change.By, To: change.To, Count: 1, Text: "wrote spec.replicas"}
	switch change.By {
	case managerHPA:
		entry.Kind, entry.By, entry.Text = record.HistoryRescale, "HPA", "lastScaleTime; no event tells more of it"
	case "":
		entry.By, entry.Text = "unknown", change.Reason
	}
	return entry
}

// order puts what followed behind what caused it, in the same second.
func order(e record.HistoryEntry) int {
	if e.Kind == record.HistoryReplicaSet {
		return 1
	}
	return 0
}

func historyEntry(event corev1.Event) (record.HistoryEntry, bool) {
	entry := record.HistoryEntry{Time: eventTime(event).UTC(), Count: eventCount(event), Text: event.Message}
	switch kind := event.InvolvedObject.Kind; {
	case kind == "HorizontalPodAutoscaler" && event.Reason == "SuccessfulRescale":
		size, reason, ok := hpa.ParseRescale(event.Message)
		if ok {
			entry.To, entry.Text = &size, cmp.Or(reason, "a proposal of the stabilization window's: the metrics asked for no other size")
		}
		entry.Kind, entry.By = record.HistoryRescale, "HPA"
	case kind == "HorizontalPodAutoscaler" && event.Type == corev1.EventTypeWarning:
		entry.Kind, entry.By, entry.Text = record.HistoryProblem, "HPA", event.Reason+": "+event.Message
	case kind == "ScaledObject" && slices.Contains([]string{"KEDAScalersStarted", "KEDAScalersStopped", "ScaledObjectReady"}, event.Reason):
		// They come with each edit and each restart, and change no size.
		return entry, false
	case kind == "ScaledObject" && !changesSize(event):
		entry.Kind, entry.By, entry.Text = record.HistoryProblem, "KEDA", event.Reason+": "+event.Message
	case kind == "ScaledObject":
		entry.Kind, entry.By, entry.Text = record.HistoryKEDA, "KEDA", event.Reason+": "+event.Message
		entry.From, entry.To = fromTo(event.Message)
	case event.Reason == "ScalingReplicaSet":
		entry.Kind, entry.By = record.HistoryReplicaSet, "Deployment"
		entry.From, entry.To = fromTo(event.Message)
	default:
		return entry, false
	}
	return entry, true
}

// fromTo reads "from 1 to 2", or "to 2 from 1", or "to 2".
func fromTo(message string) (from, to *int32) {
	read := func(word string) *int32 {
		found := regexp.MustCompile(`\b` + word + ` (\d+)\b`).FindStringSubmatch(message)
		if found == nil {
			return nil
		}
		n, err := strconv.ParseInt(found[1], 10, 32)
		if err != nil {
			return nil
		}
		size := int32(n)
		return &size
	}
	return read("from"), read("to")
}

// fillFrom takes the size before a rescale from the ReplicaSet's event that
// followed it, where that ends at the same size.
func fillFrom(history []record.HistoryEntry) {
	for i := range history {
		e := &history[i]
		if e.Kind != record.HistoryRescale || e.From != nil || e.To == nil {
			continue
		}
		for _, after := range history[i:] {
			if after.Kind == record.HistoryReplicaSet && after.From != nil && after.To != nil && *after.To == *e.To && after.Time.Sub(e.Time) <= 2*time.Second {
				e.From = after.From
				break
			}
		}
	}
}

// actor is a field manager as people know it.
func actor(manager string) string {
	for _, known := range []struct{ prefix, name string }{
		{"kube-controller-manager", "the HPA"}, {"keda", "KEDA"}, {"argocd", "Argo CD"}, {"kustomize-controller", "Flux"},
		{"helm-controller", "Flux"}, {"helm", "Helm"}, {"kubectl", manager}, {"HPA", "the HPA"}, {"Deployment", "the Deployment"},
	} {
		if strings.HasPrefix(manager, known.prefix) {
			return known.name
		}
	}
	return manager
}
