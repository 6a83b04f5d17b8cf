package record

import (
	"path"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// KindVerifyPlan and KindModelVerification name the two documents of a
// verification.
const (
	KindVerifyPlan        = "VerifyPlan"
	KindModelVerification = "ModelVerification"
)

// SignatureName is the key of a model's signature below its prefix: a Sigstore
// bundle in the format of OpenSSF Model Signing.
const SignatureName = "model.sig"

// VerifyPlan says which prefix is compared with its manifest, and how closely.
// VerifyFast and VerifyFull are its modes.
type VerifyPlan struct {
	TypeMeta
	// Location is s3://bucket/prefix; the manifest is directly below it.
	Location   string `json:"location"`
	S3Endpoint string `json:"s3_endpoint,omitempty"`
	S3Region   string `json:"s3_region,omitempty"`
	// Mode is VerifyFast (no data is read) or VerifyFull (every byte is).
	Mode string `json:"mode"`
	// Key is the public key, as PEM, of which the prefix must hold a signature;
	// "" asks for none.
	Key string `json:"key,omitempty"`
	// Parallel is the number of objects that are looked at together; 0 is 8.
	Parallel int `json:"parallel,omitempty"`
}

// VerifyFull reads every object again and hashes it.
const VerifyFull = "full"

// Validate refuses a plan that cannot work whatever the store says.
func (p VerifyPlan) Validate() error {
	if _, _, err := p.Bucket(); err != nil {
		return err
	}
	if p.S3Endpoint != "" {
		if err := CheckURL(p.S3Endpoint); err != nil {
			return failure.New(failure.Usage, "write it as https://host:port", "read plan: S3 endpoint: %w", err)
		}
	}
	if p.Mode != VerifyFast && p.Mode != VerifyFull {
		return failure.New(failure.Usage, "the modes are fast and full", "read plan: mode %q is not known", p.Mode)
	}
	if p.Parallel < 0 || p.Parallel > MaxParallel {
		return failure.New(failure.Usage, "the default suits most stores", "read plan: %d objects at a time is not from 0 to %d", p.Parallel, MaxParallel)
	}
	return nil
}

// Bucket splits Location into the bucket and the key prefix, which has no slash
// at either end.
func (p VerifyPlan) Bucket() (bucket, prefix string, err error) { return SplitLocation(p.Location) }

// SplitLocation splits s3://bucket/prefix into the bucket and the key prefix,
// which has no slash at either end.
func SplitLocation(location string) (bucket, prefix string, err error) {
	rest, found := strings.CutPrefix(location, "s3://")
	bucket, prefix, _ = strings.Cut(rest, "/")
	prefix = strings.Trim(prefix, "/")
	if !found || bucket == "" || (prefix != "" && path.Clean("/"+prefix) != "/"+prefix) || strings.ContainsAny(location, "\x00\r\n") {
		return "", "", failure.New(failure.Usage, "write it as s3://bucket/prefix", "read plan: %q is not an S3 location", location)
	}
	return bucket, prefix, nil
}

// ModelVerification is what a verification found.
type ModelVerification struct {
	TypeMeta
	Location string    `json:"location"`
	Mode     string    `json:"mode"`
	Time     time.Time `json:"time"`
	// Matches is true where the prefix holds exactly what its manifest lists,
	// and the signature that was asked for is right.
	Matches bool `json:"matches"`
	// ModelID, Revision, UploadedAt and RootDigest are the manifest's.
	ModelID    string    `json:"model_id"`
	Revision   string    `json:"revision"`
	UploadedAt time.Time `json:"uploaded_at"`
	RootDigest string    `json:"root_digest"`
	// ManifestSHA256 is the digest of the manifest object itself.
	ManifestSHA256 string    `json:"manifest_sha256"`
	Signature      Signature `json:"signature"`
	// Listed is what the manifest lists, Proved the part of it whose content
	// was proved: by the bytes read, or by a checksum that the store computed
	// and the manifest recorded. The rest agrees in size and metadata only.
	Listed FileCount `json:"listed"`
	Proved FileCount `json:"proved"`
	// BytesRead counts what was read from objects, repeats included.
	BytesRead       int64   `json:"bytes_read"`
	DurationSeconds float64 `json:"duration_seconds"`
	// ProblemCount counts all differences, of which Problems has the first
	// MaxProblems in order of their paths.
	ProblemCount int            `json:"problem_count"`
	Problems     []ModelProblem `json:"problems"`
	Warnings     []string       `json:"warnings"`
}

// MaxProblems bounds the differences that a ModelVerification lists.
const MaxProblems = 1000

// Signature says what is known of the signature beside a manifest.
type Signature struct {
	// State is one of the Signature constants.
	State string `json:"state"`
	// KeyID is the SHA-256 of the public key's PEM, in hex, as the bundle
	// states it; "" where there is none.
	KeyID string `json:"key_id"`
}

// The states of a Signature.
const (
	// SignatureNone: there is no signature.
	SignatureNone = "none"
	// SignatureUnchecked: there is one, and no key to check it with was given.
	SignatureUnchecked = "unchecked"
	// SignatureValid: it is by the given key, and of these files.
	SignatureValid = "valid"
	// SignatureInvalid: it is not; the problems say why.
	SignatureInvalid = "invalid"
)

// ModelProblem is one difference between a prefix and its manifest.
type ModelProblem struct {
	Path string `json:"path"`
	// Kind is one of the Problem constants.
	Kind string `json:"kind"`
	// Expected and Found are the two values that differ, in words where they
	// are not sizes or digests.
	Expected string `json:"expected"`
	Found    string `json:"found"`
}

// The kinds of a ModelProblem.
const (
	ProblemMissing = "missing"
	ProblemExtra   = "extra"
	ProblemSize    = "size"
	// ProblemContent: the SHA-256 is another one, as computed by the store or,
	// in a full verification, from the bytes.
	ProblemContent = "content"
	// ProblemChecksum: the store's checksum over the parts is not the recorded
	// one. The object was written anew; its content may be the same.
	ProblemChecksum = "checksum"
	// ProblemMetadata: the object states another digest, or none at all where
	// the store has no checksum either.
	ProblemMetadata  = "metadata"
	ProblemSignature = "signature"
)
