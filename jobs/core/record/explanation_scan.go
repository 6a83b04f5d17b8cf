package record

// KindScalingScan is the document of explain-scaling without a target.
const KindScalingScan = "ScalingScan"

// ScalingScan has one entry for each workload that something scales, the worst
// first.
type ScalingScan struct {
	TypeMeta
	// Namespace is "" for all namespaces.
	Namespace         string          `json:"namespace"`
	AsOf              ExplainedMoment `json:"as_of"`
	KubernetesVersion string          `json:"kubernetes_version"`
	Items             []ScannedChain  `json:"items"`
	Unread            []UnreadInput   `json:"unread_inputs"`
}

// SeverityNone is the severity of a workload that gives no cause for concern.
const SeverityNone = "none"

// ScannedChain is one workload of a scan.
type ScannedChain struct {
	Namespace string `json:"namespace"`
	// Target is what to explain for more, as TYPE/NAME.
	Target string `json:"target"`
	// Severity is "error", "warning", "info" or "none"; Summary says why.
	Severity string       `json:"severity"`
	Summary  string       `json:"summary"`
	Chain    ScalingChain `json:"chain"`
}
