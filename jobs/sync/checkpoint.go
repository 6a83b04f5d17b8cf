package sync

import (
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/hub"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

const checkpointVersion = 1

// checkpoint says how far the upload of one large file has come. It is a small
// object beside the files, so that a pod on another node goes on where this one
// was stopped. It saves work and proves nothing: it is believed only as far as
// the parts in the store have the checksums that it was made from, and the file
// is complete only when the digest of the whole is the Hub's.
type checkpoint struct {
	Version int `json:"version"`
	// Path, Size, Digest, PartSize and KMSKey must be those of the plan: parts
	// of other bytes, of another cut or under another key are never used.
	Path     string               `json:"path"`
	Size     int64                `json:"size"`
	Digest   *record.SourceDigest `json:"digest"`
	PartSize int64                `json:"part_size"`
	KMSKey   string               `json:"kms_key,omitempty"`
	// Upload is the store's id of the upload.
	Upload string `json:"upload_id"`
	// Parts is how many parts from the first on are in the hash states.
	Parts int `json:"parts"`
	// PartsSHA256 is the SHA-256 over the raw digests of these parts.
	PartsSHA256 string `json:"parts_sha256"`
	// SHA256 and Git are hash states, as encoding.BinaryMarshaler gives them.
	SHA256 []byte `json:"sha256_state,omitempty"`
	Git    []byte `json:"git_state,omitempty"`
	// Whole and Checksum make it a receipt: the upload's bytes were verified and
	// have the SHA-256 Whole, and the object of its parts has this checksum in
	// the store. It vouches for the object until the manifest does.
	Whole    string `json:"whole_sha256,omitempty"`
	Checksum string `json:"checksum,omitempty"`
	// Sum is the digest over all of the above.
	Sum string `json:"sum"`
}

func (c checkpoint) sum() string {
	c.Sum = ""
	data, err := json.Marshal(c)
	if err != nil {
		return ""
	}
	return digest(data)
}

// parseCheckpoint refuses what is not whole.
func parseCheckpoint(data []byte) (checkpoint, error) {
	var c checkpoint
	if err := json.Unmarshal(data, &c); err != nil {
		return checkpoint{}, fmt.Errorf("read checkpoint: %w", err)
	}
	if c.Version != checkpointVersion || c.Upload == "" || c.Parts < 0 || c.Sum == "" || c.Sum != c.sum() {
		return checkpoint{}, fmt.Errorf("read checkpoint: it is not sound")
	}
	return c, nil
}

// fits says whether the checkpoint is of an upload that this plan would start.
func (c checkpoint) fits(file hub.File, kmsKey string) bool {
	source := sourceDigest(file)
	return source != nil && c.Digest != nil && *c.Digest == *source &&
		c.Path == file.Path && c.Size == file.Size && c.PartSize == store.PartSize(file.Size) && c.KMSKey == kmsKey
}

// attested says whether the store holds the parts that went into the states.
func (c checkpoint) attested(parts map[int]store.Part) bool {
	sum := sha256.New()
	for number := 1; number <= c.Parts; number++ {
		part, found := parts[number]
		if !found || part.SHA256 == nil || part.Size != partLength(c.Size, c.PartSize, number) {
			return false
		}
		sum.Write(part.SHA256)
	}
	return hex.EncodeToString(sum.Sum(nil)) == c.PartsSHA256
}

// partLength is the length of a part of a file of size bytes, or below 1 where
// it has no such part.
func partLength(size, partSize int64, number int) int64 {
	return min(partSize, size-int64(number-1)*partSize)
}

// state is what a verifier needs to go on after some part.
type state struct{ sha256, git []byte }

// state is nil while the verifier holds what a checkpoint does not: the header
// of a safetensors file that was not seen to be sound.
func (v *verifier) state() *state {
	if v.head != nil {
		if len(v.head.start) < v.head.want() || v.head.check(v.file.Size) != nil {
			return nil
		}
		v.head = nil
	}
	sum, err := v.sha256.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		return nil
	}
	found := &state{sha256: sum}
	if v.git != nil {
		if found.git, err = v.git.(encoding.BinaryMarshaler).MarshalBinary(); err != nil {
			return nil
		}
	}
	return found
}

// restore makes the verifier what it was after the first size bytes.
func (v *verifier) restore(from state, size int64) error {
	if err := v.sha256.(encoding.BinaryUnmarshaler).UnmarshalBinary(from.sha256); err != nil {
		return err
	}
	if v.git != nil {
		if err := v.git.(encoding.BinaryUnmarshaler).UnmarshalBinary(from.git); err != nil {
			return err
		}
	}
	v.head, v.size = nil, size
	return nil
}

// checkpointKey is the key of a path's checkpoint.
func (r *run) checkpointKey(name string) string {
	return r.key(record.CheckpointFolder + digest([]byte(name)))
}

func (r *run) isCheckpoint(key string) bool {
	return strings.HasPrefix(key, r.key(record.CheckpointFolder)+"/") && key != r.claimKey()
}

// receipt returns the SHA-256 of a large file's object where the run that
// completed it wrote it down, and "" where none did.
func (r *run) receipt(ctx context.Context, item *item, object store.Object) (string, error) {
	if object.ChecksumSHA256 == "" || object.SHA256() != "" || r.deps.Index > 0 && !r.mine(item) {
		return "", nil
	}
	found, err := r.readCheckpoint(ctx, r.checkpointKey(item.file.Path))
	if err != nil || found == nil || !found.fits(item.file, r.plan.KMSKey) || found.Checksum != object.ChecksumSHA256 {
		return "", err
	}
	return found.Whole, nil
}

// readCheckpoint returns nil where there is none that can be used.
func (r *run) readCheckpoint(ctx context.Context, key string) (*checkpoint, error) {
	data, err := r.object(ctx, key, 0, -1)
	if store.CauseOf(err) == store.NoObject {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found, err := parseCheckpoint(data)
	if err != nil {
		return nil, nil
	}
	return &found, nil
}
