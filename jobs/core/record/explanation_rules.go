package record

// KindScalingRules is the document of explain-scaling --list-rules.
const KindScalingRules = "ScalingRules"

// ScalingRules lists the rules whose findings an explanation may carry.
type ScalingRules struct {
	TypeMeta
	Rules []ScalingRule `json:"rules"`
}

// ScalingRule documents the findings of one id.
type ScalingRule struct {
	ID string `json:"id"`
	// Severities are those that its findings may have, the gravest first.
	Severities []string `json:"severities"`
	// Meaning says what is wrong in general; a finding carries the numbers.
	Meaning string `json:"meaning"`
	// Live says that it needs objects of a cluster, or saved ones: the manifest of
	// a ScaledObject alone is not enough.
	Live bool `json:"live"`
}
