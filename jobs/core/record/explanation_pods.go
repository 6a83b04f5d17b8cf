package record

// ScalingPods are a workload's pods as they were read.
type ScalingPods struct {
	Total int32 `json:"total"`
	Ready int32 `json:"ready"`
	// NotReady groups the others by what keeps them from it, the most first.
	NotReady []PodsNotReady `json:"not_ready"`
	// Nodes are those that the pods run on, the most first.
	Nodes []PodsOnNode `json:"nodes"`
}

// PodsNotReady are pods that are not Ready for one reason.
type PodsNotReady struct {
	Count int32 `json:"count"`
	// Phase is the pods' own, or Terminating.
	Phase string `json:"phase"`
	// Reason is "" where the pods do not say.
	Reason string `json:"reason"`
}

// PodsOnNode counts the pods of one node.
type PodsOnNode struct {
	Node string `json:"node"`
	Pods int32  `json:"pods"`
}

// TriggerCredentials is an object that triggers take their credentials from.
type TriggerCredentials struct {
	// Kind is TriggerAuthentication or ClusterTriggerAuthentication.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Triggers are the indexes of those that name it.
	Triggers []int `json:"triggers"`
}
