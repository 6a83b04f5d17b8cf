package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
)

// scan explains every chain in a line each, the worst first.
func scan(in inputs) record.ScalingScan {
	explained := explain(in)
	document := record.ScalingScan{
		TypeMeta:          record.Meta(record.KindScalingScan),
		Namespace:         in.namespace,
		AsOf:              explained.AsOf,
		KubernetesVersion: explained.KubernetesVersion,
		Items:             []record.ScannedChain{},
		Unread:            explained.Unread,
	}
	urgency := make(map[string]int, len(explained.Chains))
	for i, c := range explained.Chains {
		item := record.ScannedChain{Namespace: in.chains[i].Target.Namespace, Target: scannedTarget(c), Chain: c}
		var rank int
		item.Severity, item.Summary, rank = judge(c)
		urgency[item.Namespace+"/"+linkKey(c)] = rank
		document.Items = append(document.Items, item)
	}
	slices.SortStableFunc(document.Items, func(a, b record.ScannedChain) int {
		return cmp.Or(
			cmp.Compare(severityRank(b.Severity), severityRank(a.Severity)),
			cmp.Compare(urgency[b.Namespace+"/"+linkKey(b.Chain)], urgency[a.Namespace+"/"+linkKey(a.Chain)]),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Target, b.Target))
	})
	return document
}

func linkKey(c record.ScalingChain) string {
	var names []string
	for _, link := range c.Links {
		names = append(names, link.Kind+" "+link.Name)
	}
	return strings.Join(names, " ")
}

// scannedTarget is the root of a chain as it is typed.
func scannedTarget(c record.ScalingChain) string {
	if len(c.Links) == 0 {
		return ""
	}
	return kube.ShortType(c.Links[0].Kind) + "/" + c.Links[0].Name
}

func severityRank(severity string) int {
	return slices.Index([]string{record.SeverityNone, record.SeverityInfo, record.SeverityWarning, record.SeverityError}, severity)
}

// judge says how bad a chain's state is, in a line. The rank orders those of
// one severity: the higher the worse.
func judge(c record.ScalingChain) (severity, summary string, rank int) {
	head, _ := headline(c)
	finding, found := worst(c.Warnings)
	d := c.Decision
	switch {
	case c.State == record.ChainNoHPA:
		return record.SeverityError, withFinding(head, finding, found), 90
	case found && finding.Severity == record.SeverityError && finding.ID == idRivals:
		return record.SeverityError, finding.Message, 85
	case d != nil && hpa.Blocking(d.Blocking) == hpa.AllFailed && c.State == record.ChainScaled:
		return record.SeverityError, head, 80
	case c.Check != nil && c.Check.Compared && !c.Check.Agrees:
		wrong := c.Check.Disagreements[0]
		return record.SeverityError, fmt.Sprintf("disagrees with the controller on %s: %s here, %s there", wrong.What, wrong.Model, wrong.Controller), 70
	case c.Check != nil && d != nil && !c.Check.Compared && hpa.Path(d.Path) != hpa.Disabled && strings.HasPrefix(c.Check.AbleToScale, "Failed"):
		return record.SeverityError, "the controller cannot scale it: " + c.Check.AbleToScale, 75
	case d != nil && hpa.Blocking(d.Blocking) == hpa.DownBlocked:
		return record.SeverityWarning, head, 60
	case found && finding.Severity == record.SeverityError:
		return record.SeverityError, finding.Message, 50
	case atMaximum(c):
		return record.SeverityWarning, head, 50
	case found && finding.Severity == record.SeverityWarning:
		return record.SeverityWarning, finding.Message, 20
	case c.State == record.ChainPaused, c.State == record.ChainNew, c.State == record.ChainNotSynced:
		return record.SeverityInfo, head, 10
	case d != nil && hpa.Path(d.Path) == hpa.Disabled:
		return record.SeverityNone, "0 replicas: idle", 0
	case d != nil && !strings.HasPrefix(head, "stay at"):
		return record.SeverityInfo, head, 20
	}
	return record.SeverityNone, head, 0
}

func withFinding(head string, finding record.Finding, found bool) string {
	if !found {
		return head
	}
	return finding.Message
}

// worst returns the gravest finding, the first of its severity.
func worst(findings []record.Finding) (record.Finding, bool) {
	var worst record.Finding
	for _, finding := range findings {
		if severityRank(finding.Severity) > severityRank(worst.Severity) {
			worst = finding
		}
	}
	return worst, worst.ID != ""
}

// atMaximum says that the metrics ask for more than the maximum.
func atMaximum(c record.ScalingChain) bool {
	return c.Decision != nil && c.Decision.Raw != nil && c.Replicas.Max != nil && c.Replicas.Spec != nil &&
		c.Decision.Raw.Low > *c.Replicas.Max && *c.Replicas.Spec >= *c.Replicas.Max
}
