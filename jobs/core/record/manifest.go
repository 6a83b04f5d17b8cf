package record

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

const (
	// ManifestName is the key of the manifest below a model's prefix.
	ManifestName = "_MANIFEST.json"
	// ManifestSchema is the schema_version that this build writes. Version 1 is
	// the seed's uploader; its seven fields are kept, so its readers still work.
	ManifestSchema = 2
)

// Manifest says that a prefix holds exactly the listed files of one commit. It
// is written last, once every file was verified, so its presence means that
// the prefix is complete.
type Manifest struct {
	SchemaVersion int       `json:"schema_version"`
	ModelID       string    `json:"model_id"`
	Revision      string    `json:"revision"`
	UploadedAt    time.Time `json:"uploaded_at"`
	FileCount     int       `json:"file_count"`
	TotalSize     int64     `json:"total_size"`
	// Files is sorted by path in code-point order.
	Files []ManifestFile `json:"files"`

	// The fields below are new in version 2.

	RequestedRevision string       `json:"requested_revision"`
	Endpoint          string       `json:"endpoint"`
	Tool              ManifestTool `json:"tool"`
	Include           []string     `json:"include"`
	Exclude           []string     `json:"exclude"`
	Preset            string       `json:"preset"`
	// CompleteRepo is true where no file of the revision was left out.
	CompleteRepo bool              `json:"complete_repo"`
	Skipped      []ManifestSkipped `json:"skipped"`
	// RootDigest is RootDigest(Files): equal content gives an equal value,
	// whoever uploaded it and when.
	RootDigest        string            `json:"root_digest"`
	StoreCapabilities StoreCapabilities `json:"store_capabilities"`
	// Signature is set where the sync signed what it wrote: the prefix is
	// complete only together with that object.
	Signature *ManifestSignature `json:"signature,omitempty"`
}

// ManifestSignature says where a manifest's signature is. The signature is of
// the files' digests, whose root is RootDigest.
type ManifestSignature struct {
	// Path is the key below the prefix: SignatureName.
	Path string `json:"path"`
	// KeyID is the SHA-256 of the public key's PEM, in hex.
	KeyID string `json:"key_id"`
}

// ManifestTool names the program that wrote a manifest.
type ManifestTool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// ManifestFile is one verified file.
type ManifestFile struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// SourceDigest is the Hub's own digest, which the bytes were compared with;
	// nil in version 1 and where the endpoint states none.
	SourceDigest *SourceDigest `json:"source_digest"`
	XetHash      string        `json:"xet_hash,omitempty"`
	// S3 is nil in version 1.
	S3 *ManifestObject `json:"s3"`
}

// The algorithms of a SourceDigest. GitSHA1 is SHA-1 over "blob SIZE\0" and the
// bytes, the name of a git blob.
const (
	DigestSHA256  = "sha256"
	DigestGitSHA1 = "git-sha1"
)

// SourceDigest is a digest as the Hub states it, in lower-case hex.
type SourceDigest struct {
	Algorithm string `json:"alg"`
	Value     string `json:"value"`
}

// ManifestObject is what the store said about a file's object. With part_size
// and checksum_sha256 a check of the store needs to read no data.
type ManifestObject struct {
	ETag      string `json:"etag"`
	VersionID string `json:"version_id,omitempty"`
	// PartSize is 0 for an object that was put in one piece.
	PartSize       int64  `json:"part_size"`
	Parts          int    `json:"parts"`
	ChecksumSHA256 string `json:"checksum_sha256"`
	ChecksumType   string `json:"checksum_type"`
}

// ManifestSkipped is a file of the revision that was left out.
type ManifestSkipped struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	Reason string `json:"reason"`
}

// StoreCapabilities is what the store proved to do before the first byte.
type StoreCapabilities struct {
	// RefusesWrongSHA256: an object whose bytes do not match its declared
	// SHA-256 is refused.
	RefusesWrongSHA256 bool `json:"refuses_wrong_sha256"`
	// ConditionalPut: a second put with If-None-Match is refused.
	ConditionalPut bool `json:"conditional_put"`
	// ReturnsSHA256: HEAD states the checksum of an object.
	ReturnsSHA256 bool `json:"returns_sha256"`
	// RefusesWrongPart: a part whose bytes do not match its declared SHA-256 is
	// refused. It is what guards a large file on its way.
	RefusesWrongPart bool `json:"refuses_wrong_part"`
	// ListsPartSHA256: the listing of an open upload's parts states their
	// checksums, so that a later run can go on with it.
	ListsPartSHA256 bool `json:"lists_part_sha256"`
}

// RootDigest is the SHA-256 over the raw SHA-256 digests of the files in path
// order: the subject digest of an OpenSSF model signature, method "files".
// As there, the git files of the top level are not part of it.
func RootDigest(files []ManifestFile) (string, error) {
	sorted := slices.SortedFunc(slices.Values(files), func(a, b ManifestFile) int { return strings.Compare(a.Path, b.Path) })
	sum := sha256.New()
	for _, file := range sorted {
		switch top, _, _ := strings.Cut(file.Path, "/"); top {
		case ".git", ".github":
			continue
		case ".gitignore", ".gitattributes":
			if file.Path == top {
				continue
			}
		}
		raw, err := hex.DecodeString(file.SHA256)
		if err != nil || len(raw) != sha256.Size {
			return "", fmt.Errorf("digest files: %s has no SHA-256", file.Path)
		}
		sum.Write(raw)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Seal sorts the files and fills the fields that follow from them.
func (m *Manifest) Seal() error {
	slices.SortFunc(m.Files, func(a, b ManifestFile) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(m.Skipped, func(a, b ManifestSkipped) int { return strings.Compare(a.Path, b.Path) })
	m.SchemaVersion = ManifestSchema
	m.FileCount, m.TotalSize = len(m.Files), 0
	for _, file := range m.Files {
		m.TotalSize += file.Size
	}
	m.CompleteRepo = len(m.Skipped) == 0
	root, err := RootDigest(m.Files)
	m.RootDigest = root
	return err
}

// ParseManifest reads a manifest of schema version 1 or 2 and checks that it
// agrees with itself. A manifest that is not sound proves nothing about the
// prefix, so it is an error.
func ParseManifest(data []byte) (Manifest, error) {
	var version struct {
		SchemaVersion int `json:"schema_version"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return Manifest{}, fmt.Errorf("read manifest: not a JSON document: %w", err)
	}
	if version.SchemaVersion < 1 {
		return Manifest{}, fmt.Errorf("read manifest: it has no schema_version, so no sync wrote it")
	}
	if version.SchemaVersion > ManifestSchema {
		return Manifest{}, failure.New(failure.Usage, "use the kubectl-inference release that wrote it, or a newer one",
			"read manifest: schema_version %d is not known, this build reads 1 and %d", version.SchemaVersion, ManifestSchema)
	}
	var manifest Manifest
	if err := json.Unmarshal(data, &manifest); err != nil {
		return Manifest{}, fmt.Errorf("read manifest: %w", err)
	}
	return manifest, manifest.check()
}

// IsRelative says whether name is a plain path below a prefix: of UTF-8, with
// no empty, "." or ".." segment and no control character.
func IsRelative(name string) bool {
	return name != "" && path.Clean("/"+name) == "/"+name && utf8.ValidString(name) && !strings.ContainsFunc(name, Hides)
}

// Hides says whether a character makes a name look like another: control
// characters, line separators, and those that reverse the direction of writing
// (CVE-2021-42574).
func Hides(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || unicode.In(r, unicode.Zl, unicode.Zp)
}

func (m Manifest) check() error {
	var total int64
	listed := make(map[string]bool, len(m.Files))
	for _, file := range m.Files {
		if listed[file.Path] {
			return fmt.Errorf("read manifest: %q is listed twice", file.Path)
		}
		listed[file.Path] = true
		if !IsRelative(file.Path) || file.Path == ManifestName {
			return fmt.Errorf("read manifest: %q is not a path below the prefix", file.Path)
		}
		if raw, err := hex.DecodeString(file.SHA256); err != nil || len(raw) != sha256.Size || file.Size < 0 {
			return fmt.Errorf("read manifest: %q has no valid size and SHA-256", file.Path)
		}
		if file.Size > math.MaxInt64-total {
			return fmt.Errorf("read manifest: the sizes that it lists are beyond counting")
		}
		total += file.Size
	}
	if m.ModelID == "" || m.Revision == "" {
		return fmt.Errorf("read manifest: it names no model and revision")
	}
	if m.FileCount != len(m.Files) || m.TotalSize != total {
		return fmt.Errorf("read manifest: it promises %d files and %d bytes, and lists %d and %d", m.FileCount, m.TotalSize, len(m.Files), total)
	}
	if m.SchemaVersion == 1 {
		return nil
	}
	root, err := RootDigest(m.Files)
	if err != nil {
		return err
	}
	if root != m.RootDigest {
		return fmt.Errorf("read manifest: root_digest %s does not follow from its files", m.RootDigest)
	}
	return nil
}
