package record

import "time"

// The kinds of a HistoryEntry.
const (
	// HistoryRescale: the HPA wrote another size.
	HistoryRescale = "rescale"
	// HistoryKEDA: KEDA's own loop acted or changed its state.
	HistoryKEDA = "keda"
	// HistoryReplicaSet: the Deployment's controller followed.
	HistoryReplicaSet = "replicaset"
	// HistoryWrite: a field manager wrote the size; only the last such write
	// is known.
	HistoryWrite = "write"
	// HistorySampled: two scrapes of Prometheus found different sizes, and
	// nothing tells who changed them.
	HistorySampled = "sampled"
	// HistoryProblem: a warning of the HPA's or KEDA's, such as a metric that
	// failed.
	HistoryProblem = "problem"
)

// HistoryEntry is one thing that happened to a workload's size.
type HistoryEntry struct {
	Time time.Time `json:"time"`
	Kind string    `json:"kind"`
	// By is who did it: "HPA", "KEDA", "Deployment" or a field manager.
	By string `json:"by"`
	// From and To are sizes, null where they are not known.
	From *int32 `json:"from"`
	To   *int32 `json:"to"`
	// Count is how often it happened up to Time: equal events are merged.
	Count int32  `json:"count"`
	Text  string `json:"text"`
}
