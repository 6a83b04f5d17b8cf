package sync

import (
	"crypto/sha1" //nolint:gosec // git's object name, as the Hub states it
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"path"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/hub"
)

// mismatch is the error of bytes that are not the ones that the Hub states.
type mismatch struct {
	path, algorithm, want, got string
}

func (m *mismatch) Error() string {
	return fmt.Sprintf("%s: its %s is %s, the Hub states %s", m.path, m.algorithm, m.got, m.want)
}

// verifier sees a file's bytes once, in order, and judges them at the end.
type verifier struct {
	file   hub.File
	source *record.SourceDigest
	sha256 hash.Hash
	// git is nil for a file whose SHA-256 the Hub states.
	git hash.Hash
	// head is nil for a file that is not of safetensors, and once it was seen
	// to be sound.
	head *header
	size int64
}

func newVerifier(file hub.File) *verifier {
	v := &verifier{file: file, source: sourceDigest(file), sha256: sha256.New()}
	if v.source != nil && v.source.Algorithm == record.DigestGitSHA1 {
		v.git = sha1.New() //nolint:gosec // as above
		fmt.Fprintf(v.git, "blob %d\x00", file.Size)
	}
	if path.Ext(file.Path) == ".safetensors" {
		v.head = new(header)
	}
	return v
}

func (v *verifier) write(p []byte) {
	v.sha256.Write(p)
	if v.git != nil {
		v.git.Write(p)
	}
	if v.head != nil {
		v.head.write(p)
	}
	v.size += int64(len(p))
}

// Write makes it an io.Writer.
func (v *verifier) Write(p []byte) (int, error) {
	v.write(p)
	return len(p), nil
}

// check returns the SHA-256 in hex, or why the bytes are not the file.
func (v *verifier) check() (string, error) {
	sum := hex.EncodeToString(v.sha256.Sum(nil))
	if v.size != v.file.Size {
		return "", &mismatch{v.file.Path, "size", fmt.Sprint(v.file.Size), fmt.Sprint(v.size)}
	}
	if v.source != nil {
		got := sum
		if v.git != nil {
			got = hex.EncodeToString(v.git.Sum(nil))
		}
		if got != v.source.Value {
			return "", &mismatch{v.file.Path, v.source.Algorithm, v.source.Value, got}
		}
	}
	if v.head != nil {
		if err := v.head.check(v.file.Size); err != nil {
			return "", &unsound{path: v.file.Path, err: err}
		}
	}
	return sum, nil
}

// unsound is the error of a file that is the Hub's, and not what it should be.
type unsound struct {
	path string
	err  error
}

func (u *unsound) Error() string { return u.path + ": " + u.err.Error() }
func (u *unsound) Unwrap() error { return u.err }
