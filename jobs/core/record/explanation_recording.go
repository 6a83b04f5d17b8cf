package record

import "time"

// KindScalingRecording is what lies beside recorded objects.
const KindScalingRecording = "ScalingRecording"

// ScalingRecording says when and where objects were recorded for an
// explanation elsewhere.
type ScalingRecording struct {
	TypeMeta
	ReadAt            time.Time `json:"read_at"`
	Namespace         string    `json:"namespace"`
	Target            string    `json:"target"`
	KubernetesVersion string    `json:"kubernetes_version"`
	// KEDAVersion is "" where no object told it.
	KEDAVersion string        `json:"keda_version"`
	Unread      []UnreadInput `json:"unread_inputs"`
}
