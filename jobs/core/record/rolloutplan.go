package record

import (
	"encoding/json"
	"time"
)

// Kinds of the rollout's documents.
const (
	KindRolloutPlan = "RolloutPlan"
	KindColdStart   = "ColdStart"
)

// How much of a prefix a rollout checks before it serves it.
const (
	// VerifyManifest reads the manifest alone.
	VerifyManifest = "manifest"
	// VerifyFast also looks at every object: that it is there, its size, and
	// the digest that it was uploaded with. No data is read.
	VerifyFast = "fast"
)

// RolloutPlan is everything that a rollout's Job does: which prefix it checks,
// which objects it applies, and what it waits for.
type RolloutPlan struct {
	TypeMeta
	Name      string       `json:"name"`
	Namespace string       `json:"namespace"`
	Model     RolloutModel `json:"model"`
	// Verify is VerifyManifest or VerifyFast.
	Verify string `json:"verify"`
	// Objects are applied in this order, with server-side apply.
	Objects []json.RawMessage `json:"objects"`
	// Deployment names the Deployment that serves. Where a controller makes it,
	// it is "" and Workload selects it by labels.
	Deployment string            `json:"deployment"`
	Workload   map[string]string `json:"workload"`
	// URL is the predictor's Service inside the cluster, where the first
	// request goes; ServedModel the model id it names, "" for the server's own.
	URL         string `json:"url"`
	ServedModel string `json:"served_model"`
	// TimeoutSeconds bounds the whole rollout.
	TimeoutSeconds float64 `json:"timeout_seconds"`
}

// RolloutModel is the prefix that is served.
type RolloutModel struct {
	// URI is s3://bucket/prefix. Its manifest must be there.
	URI string `json:"uri"`
	// Revision is the commit that the manifest must name; "" accepts any.
	Revision   string `json:"revision"`
	S3Endpoint string `json:"s3_endpoint"`
	S3Region   string `json:"s3_region"`
}

// ColdStart is how long a new replica took to serve, by phase. It is what
// decides how early scaling must start.
type ColdStart struct {
	TypeMeta
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Model, ModelID and Revision say what was served.
	Model    string    `json:"model"`
	ModelID  string    `json:"model_id"`
	Revision string    `json:"revision"`
	Finished time.Time `json:"finished"`
	// ServedModel is the id that the server answers to, MaxModelLen its longest
	// request in tokens; nil where it does not say.
	ServedModel string `json:"served_model"`
	MaxModelLen *int   `json:"max_model_len"`
	// Replicas are the replicas that started in this rollout, oldest first.
	// Empty when the rollout started none.
	Replicas []ReplicaStart `json:"replicas"`
}

// ReplicaStart is one replica's start. A phase that cannot be told apart is
// null; the phases that are known add up to TotalSeconds.
type ReplicaStart struct {
	Pod   string `json:"pod"`
	Node  string `json:"node"`
	Image string `json:"image"`
	// Created is when the pod was made.
	Created time.Time `json:"created"`
	// QueuedSeconds is from the pod's creation to its place on a node. It
	// includes the time in which a node is made for it.
	QueuedSeconds *float64 `json:"queued_seconds"`
	// PreparedSeconds is from there to the start of the container: the image is
	// pulled, volumes are mounted.
	PreparedSeconds *float64 `json:"prepared_seconds"`
	// LoadedSeconds is from there to Ready: the weights are loaded.
	LoadedSeconds *float64 `json:"loaded_seconds"`
	// FirstTokenSeconds is from Ready to the answer to the first request; known
	// for one replica only, the one that answered.
	FirstTokenSeconds *float64 `json:"first_token_seconds"`
	TotalSeconds      float64  `json:"total_seconds"`
}
