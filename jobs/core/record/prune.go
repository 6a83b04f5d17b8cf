package record

import (
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// KindPrunePlan and KindPruneResult name the two documents of a prune.
const (
	KindPrunePlan   = "PrunePlan"
	KindPruneResult = "PruneResult"
)

// PrunePlan says which revisions below a base may go. The plugin writes into it
// what the cluster refers to, so whoever carries it out asks the bucket only.
type PrunePlan struct {
	TypeMeta
	// Location is s3://bucket/base, below which revisions are looked for.
	Location   string `json:"location"`
	S3Endpoint string `json:"s3_endpoint,omitempty"`
	S3Region   string `json:"s3_region,omitempty"`
	// Keep is how many of the newest complete revisions of each model stay.
	Keep int `json:"keep"`
	// OlderThanSeconds spares what is younger.
	OlderThanSeconds float64     `json:"older_than_seconds"`
	References       []Reference `json:"references"`
	// Unread names the kinds and namespaces in which references could not be
	// looked for. Nothing is deleted then, unless EvenIfUnread.
	Unread       []string `json:"unread"`
	EvenIfUnread bool     `json:"even_if_unread,omitempty"`
	// Extra deletes objects below a revision that no sync wrote, too.
	Extra bool `json:"extra,omitempty"`
	// Apply deletes; without it, the plan is only told.
	Apply bool `json:"apply,omitempty"`
}

// Reference is a use of a place in the bucket, or of a revision wherever it is.
type Reference struct {
	// Prefix is a key prefix without a slash at either end; "" is the whole
	// bucket. It counts where Revision is "".
	Prefix string `json:"prefix"`
	// Revision is a commit id.
	Revision string `json:"revision,omitempty"`
	// Holder is the object that refers to it, as KIND NAMESPACE/NAME.
	Holder string `json:"holder"`
}

// Validate refuses a plan that cannot work whatever the store says.
func (p PrunePlan) Validate() error {
	if _, _, err := SplitLocation(p.Location); err != nil {
		return err
	}
	if p.S3Endpoint != "" {
		if err := CheckURL(p.S3Endpoint); err != nil {
			return failure.New(failure.Usage, "write it as https://host:port", "read plan: S3 endpoint: %w", err)
		}
	}
	if p.Keep < 0 || p.OlderThanSeconds < 0 {
		return failure.New(failure.Usage, "give 0 or more", "read plan: what is kept cannot be negative")
	}
	return nil
}

// PruneResult says what a prune did or, without Applied, would do.
type PruneResult struct {
	TypeMeta
	Location  string          `json:"location"`
	Time      time.Time       `json:"time"`
	Applied   bool            `json:"applied"`
	Revisions []PruneRevision `json:"revisions"`
	// Other is what lies below the base and belongs to no revision: it is left
	// alone.
	Other FileCount `json:"other"`
	// Deleted is what was deleted, or would be.
	Deleted  FileCount `json:"deleted"`
	Unread   []string  `json:"unread"`
	Warnings []string  `json:"warnings"`
}

// PruneRevision is one revision below a base.
type PruneRevision struct {
	Location string `json:"location"`
	ModelID  string `json:"model_id"`
	Revision string `json:"revision"`
	// State is one of the State constants.
	State   string    `json:"state"`
	Content FileCount `json:"content"`
	// Changed is when its newest object or upload began.
	Changed time.Time `json:"changed"`
	// Action is one of the Prune constants; Reason says why.
	Action string `json:"action"`
	Reason string `json:"reason"`
}

// The states of a revision in a bucket.
const (
	StateComplete   = "complete"
	StateUnfinished = "unfinished"
	// StateForeign: there is a manifest, and no sync of ours wrote it.
	StateForeign = "foreign"
)

// What becomes of a revision.
const (
	PruneKeep   = "keep"
	PruneDelete = "delete"
	// PruneRefuse: it could go, and something forbids to do so.
	PruneRefuse = "refuse"
)
