package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/podstate"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// podsIn counts pods by what they do and where; nil for nil, which is unknown.
func podsIn(pods []corev1.Pod) *record.ScalingPods {
	if pods == nil {
		return nil
	}
	out := &record.ScalingPods{Total: int32(len(pods)), NotReady: []record.PodsNotReady{}, Nodes: []record.PodsOnNode{}}
	for i := range pods {
		pod := &pods[i]
		if name := pod.Spec.NodeName; name != "" {
			at := slices.IndexFunc(out.Nodes, func(n record.PodsOnNode) bool { return n.Node == name })
			if at < 0 {
				at, out.Nodes = len(out.Nodes), append(out.Nodes, record.PodsOnNode{Node: name})
			}
			out.Nodes[at].Pods++
		}
		if chain.Ready(pods[i:i+1]) > 0 && pod.DeletionTimestamp == nil {
			out.Ready++
			continue
		}
		phase, reason := whyNotReady(pod)
		at := slices.IndexFunc(out.NotReady, func(n record.PodsNotReady) bool { return n.Phase == phase && n.Reason == reason })
		if at < 0 {
			at, out.NotReady = len(out.NotReady), append(out.NotReady, record.PodsNotReady{Phase: phase, Reason: reason})
		}
		out.NotReady[at].Count++
	}
	slices.SortStableFunc(out.Nodes, func(a, b record.PodsOnNode) int {
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.Node, b.Node))
	})
	slices.SortStableFunc(out.NotReady, func(a, b record.PodsNotReady) int { return cmp.Compare(b.Count, a.Count) })
	return out
}

// whyNotReady is a pod's phase and what it waits for, without its name, so that
// equal pods are told once.
func whyNotReady(pod *corev1.Pod) (phase, reason string) {
	phase = cmp.Or(string(pod.Status.Phase), "Unknown")
	if pod.DeletionTimestamp != nil {
		return "Terminating", ""
	}
	reason = cmp.Or(podstate.Waiting(pod), podstate.Crashing(pod, 1))
	reason = strings.TrimPrefix(reason, "pod "+pod.Name+" ")
	if reason != "" {
		return phase, reason
	}
	if phase == string(corev1.PodFailed) {
		return phase, cmp.Or(pod.Status.Message, pod.Status.Reason)
	}
	if ready, known := podstate.Condition(pod, corev1.PodReady); known && phase == string(corev1.PodRunning) {
		reason = cmp.Or(ready.Message, ready.Reason)
	}
	return phase, reason
}

// credentialsOf lists what the triggers take their credentials from.
func credentialsOf(so *keda.ScaledObject) []record.TriggerCredentials {
	all := []record.TriggerCredentials{}
	if so == nil {
		return all
	}
	for i, source := range so.Spec.Triggers {
		ref := source.AuthenticationRef
		if ref == nil || ref.Name == "" {
			continue
		}
		kind := cmp.Or(ref.Kind, "TriggerAuthentication")
		at := slices.IndexFunc(all, func(c record.TriggerCredentials) bool { return c.Kind == kind && c.Name == ref.Name })
		if at < 0 {
			at, all = len(all), append(all, record.TriggerCredentials{Kind: kind, Name: ref.Name})
		}
		all[at].Triggers = append(all[at].Triggers, i)
	}
	return all
}

// nodesShown is how many nodes are named in a line.
const nodesShown = 4

// renderPods writes where the pods are, why some are not Ready, and whose
// credentials the triggers use.
func renderPods(text *strings.Builder, c record.ScalingChain) {
	if pods := c.Pods; pods != nil && (len(pods.NotReady) > 0 || len(pods.Nodes) > 0) {
		fmt.Fprintf(text, "pods: %d of %d ready%s\n", pods.Ready, pods.Total, nodesText(pods.Nodes))
		for _, group := range pods.NotReady {
			line := fmt.Sprintf("  %d %s", group.Count, group.Phase)
			if group.Reason != "" {
				line += ": " + shortened(group.Reason, 200)
			}
			fmt.Fprintln(text, line)
		}
	}
	for _, credentials := range c.Credentials {
		var triggers []string
		for _, index := range credentials.Triggers {
			triggers = append(triggers, fmt.Sprintf("s%d", index))
		}
		fmt.Fprintf(text, "credentials: %s %s (%s)\n", credentials.Kind, credentials.Name, strings.Join(triggers, ", "))
	}
}

func nodesText(nodes []record.PodsOnNode) string {
	if len(nodes) == 0 {
		return ""
	}
	var names []string
	for _, node := range nodes[:min(len(nodes), nodesShown)] {
		names = append(names, fmt.Sprintf("%s (%d)", node.Node, node.Pods))
	}
	text := ", on " + plural(int32(len(nodes)), "node", "nodes") + ": " + strings.Join(names, ", ")
	if more := len(nodes) - nodesShown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
