package record

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// KindSyncPlan and KindSyncResult name the two documents of a sync.
const (
	KindSyncPlan   = "SyncPlan"
	KindSyncResult = "SyncResult"
)

// SyncPlan says which Hub revision goes to which bucket. The plugin writes it,
// the Job reads it. It holds no secret: the Hub token and the S3 keys reach the
// Job by its environment.
type SyncPlan struct {
	TypeMeta
	// Repo is the Hub model as owner/name.
	Repo string `json:"repo"`
	// Revision is a commit, branch, tag or reference such as refs/pr/3. It is
	// resolved to a 40-hex commit before anything else happens. Empty is main.
	Revision string `json:"revision"`
	// HubEndpoint is the Hub's base URL; empty is the public Hub.
	HubEndpoint string `json:"hub_endpoint,omitempty"`
	// Destination is s3://bucket or s3://bucket/prefix.
	Destination string `json:"destination"`
	// S3Endpoint is the base URL of an S3 server that is not AWS; empty takes
	// AWS_ENDPOINT_URL_S3 and then AWS_ENDPOINT_URL from the environment.
	S3Endpoint string `json:"s3_endpoint,omitempty"`
	// S3Region overrides the region of the environment.
	S3Region string `json:"s3_region,omitempty"`
	// KMSKey encrypts the objects with this KMS key (aws:kms) where set.
	KMSKey string `json:"kms_key,omitempty"`
	// Flat writes to Destination itself, as the seed's uploader did, in place
	// of Destination/owner/name/commit. Such a prefix is mutable.
	Flat bool `json:"flat,omitempty"`
	// Replace lets a flat delivery take the place of another model's.
	Replace bool `json:"replace,omitempty"`
	// Include and Exclude are Hub CLI patterns: Python's fnmatch, in which *
	// crosses slashes. Exclude wins.
	Include []string `json:"include,omitempty"`
	Exclude []string `json:"exclude,omitempty"`
	// Preset is "all" (every file, the default) or "vllm" (what vLLM reads).
	Preset string `json:"preset,omitempty"`
	// AllowIncompleteIndex accepts an index that names weights outside the plan.
	AllowIncompleteIndex bool `json:"allow_incomplete_index,omitempty"`
	// AllowUnverified accepts files for which the endpoint states no digest.
	AllowUnverified bool `json:"allow_unverified,omitempty"`
	// Parallel is the number of transfers in flight inside one pod; 0 is 8.
	Parallel int `json:"parallel,omitempty"`
	// Workers is the number of pods that share the files; 0 is one pod.
	Workers int `json:"workers,omitempty"`
	// MemoryBytes bounds all transfer buffers together; 0 is 256 MiB.
	MemoryBytes int64 `json:"memory_bytes,omitempty"`
	// Sign has the run write a signature beside the manifest, with the key that
	// reaches it by its environment.
	Sign bool `json:"sign,omitempty"`
	// ReplaceSignature lets the signature take the place of another key's.
	ReplaceSignature bool `json:"replace_signature,omitempty"`
	// Recheck reads every object that is there again, and brings over anew what
	// a disk or a wire changed without the store's knowledge. One pod does it.
	Recheck bool `json:"recheck,omitempty"`
	// DryRun plans and reports, and writes nothing.
	DryRun bool `json:"dry_run,omitempty"`
}

// The presets of a SyncPlan.
const (
	PresetAll  = "all"
	PresetVLLM = "vllm"
)

var (
	repoName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$`)
	commitID = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// IsCommit says whether revision is a full commit id: 40 lower-case hex digits.
func IsCommit(revision string) bool { return commitID.MatchString(revision) }

// Validate refuses a plan that cannot work whatever the servers say.
func (p SyncPlan) Validate() error {
	if !repoName.MatchString(p.Repo) || strings.Contains(p.Repo, "..") {
		return failure.New(failure.Usage, "name the model as on the Hub, for example Qwen/Qwen2.5-0.5B-Instruct",
			"read plan: model %q is not OWNER/NAME", p.Repo)
	}
	if _, _, err := p.Bucket(); err != nil {
		return err
	}
	for name, value := range map[string]string{"Hub endpoint": p.HubEndpoint, "S3 endpoint": p.S3Endpoint} {
		if value == "" {
			continue
		}
		if err := CheckURL(value); err != nil {
			return failure.New(failure.Usage, "write it as https://host:port", "read plan: %s: %w", name, err)
		}
	}
	switch p.Preset {
	case "", PresetAll, PresetVLLM:
	default:
		return failure.New(failure.Usage, "the presets are all and vllm", "read plan: preset %q is not known", p.Preset)
	}
	if p.Recheck && (p.Workers > 1 || p.DryRun) {
		return failure.New(failure.Usage, "leave out --workers and --dry-run; `sync-model verify --full` reads without healing", "read plan: --recheck is for one pod that may write")
	}
	return p.checkSizes()
}

// The largest numbers that make sense: beyond them a typing error is likelier,
// and the cost is not the user's alone.
const (
	MaxParallel = 256
	MaxWorkers  = 64
	MaxMemory   = 64 << 30
)

func (p SyncPlan) checkSizes() error {
	for name, value := range map[string]struct{ got, most int }{"parallel": {p.Parallel, MaxParallel}, "workers": {p.Workers, MaxWorkers}} {
		if value.got < 0 || value.got > value.most {
			return failure.New(failure.Usage, fmt.Sprintf("give a number from 1 to %d", value.most), "read plan: %s is %d", name, value.got)
		}
	}
	if p.MemoryBytes < 0 || p.MemoryBytes > MaxMemory {
		return failure.New(failure.Usage, "give at most 64Gi", "read plan: memory is %d bytes", p.MemoryBytes)
	}
	return nil
}

// Bucket splits Destination into the bucket and the key prefix, which has no
// slash at either end.
func (p SyncPlan) Bucket() (bucket, prefix string, err error) {
	rest, found := strings.CutPrefix(p.Destination, "s3://")
	bucket, prefix, _ = strings.Cut(rest, "/")
	prefix = strings.Trim(prefix, "/")
	if !found || bucket == "" || (prefix != "" && path.Clean(prefix) != prefix) || strings.HasPrefix(prefix, "../") || prefix == ".." {
		return "", "", failure.New(failure.Usage, "write it as s3://bucket/prefix", "read plan: destination %q is not an S3 location", p.Destination)
	}
	return bucket, prefix, nil
}

// Prefix is the key prefix below which commit is stored, without a slash at
// the end. A prefix that holds the commit id is immutable once its manifest
// exists, so a running server never sees another revision's files.
func (p SyncPlan) Prefix(commit string) (string, error) {
	_, prefix, err := p.Bucket()
	if err != nil || p.Flat {
		return prefix, err
	}
	return path.Join(prefix, p.Repo, commit), nil
}

// SyncResult says what a sync did.
type SyncResult struct {
	TypeMeta
	Repo string `json:"repo"`
	// RequestedRevision is what the plan named, Revision the commit it meant.
	RequestedRevision string `json:"requested_revision"`
	Revision          string `json:"revision"`
	// Location is the s3:// URL of the prefix, fit for `rollout --model`.
	Location string `json:"location"`
	// ManifestSHA256 is the digest of the manifest object, RootDigest the one
	// over the files' digests. Both are "" after a dry run.
	ManifestSHA256 string `json:"manifest_sha256"`
	RootDigest     string `json:"root_digest"`
	// SignedBy is the id of the key with which the files are signed, "" where
	// nobody asked for a signature.
	SignedBy string `json:"signed_by,omitempty"`
	// AlreadyComplete is true where the prefix was complete before the run.
	AlreadyComplete bool `json:"already_complete"`
	// Worker is "2 of 3" in the result of a worker that did not write the
	// manifest, which is the first one's to do.
	Worker string `json:"worker,omitempty"`
	DryRun bool   `json:"dry_run"`
	// Total is the whole plan. Uploaded went over the wire in this run (in a
	// dry run: would), Present was found with the right digest.
	Total    FileCount `json:"total"`
	Uploaded FileCount `json:"uploaded"`
	Present  FileCount `json:"present"`
	// Removed is what a flat prefix held of former deliveries and this one lacks.
	Removed FileCount `json:"removed"`
	// Skipped is what patterns and the preset left out.
	Skipped FileCount `json:"skipped"`
	// DownloadedBytes counts the bytes read from the Hub, retries included.
	DownloadedBytes int64 `json:"downloaded_bytes"`
	// ResumedBytes are those of unfinished files that an earlier, interrupted
	// run had brought: neither read from the Hub nor sent again.
	ResumedBytes int64 `json:"resumed_bytes"`
	// Retries counts repeated requests to the Hub, RateLimitSeconds the time
	// that the Hub's rate limits made it wait.
	Retries          int64          `json:"retries"`
	RateLimitSeconds float64        `json:"rate_limit_seconds"`
	DurationSeconds  float64        `json:"duration_seconds"`
	Warnings         []string       `json:"warnings"`
	Files            []SyncFilePlan `json:"files"`
	// FilesOmitted says that the list of files was too long for where the
	// result was kept; the manifest has it.
	FilesOmitted bool `json:"files_omitted,omitempty"`
}

// Brief is the result without its list of files, which fits into the last words
// of a container.
func (r SyncResult) Brief() any {
	r.Files, r.FilesOmitted = []SyncFilePlan{}, true
	return r
}

// FileCount is a number of files and their bytes.
type FileCount struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Add counts one file more.
func (c *FileCount) Add(bytes int64) {
	c.Files++
	c.Bytes += bytes
}

// SyncFilePlan is what a sync does with one file.
type SyncFilePlan struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	// Action is "upload", "present", "remove" or "skip"; Reason says why.
	Action string `json:"action"`
	Reason string `json:"reason"`
}

// The actions of a SyncFilePlan.
const (
	ActionUpload  = "upload"
	ActionPresent = "present"
	ActionSkip    = "skip"
	ActionRemove  = "remove"
)
