package sync

import (
	"encoding/hex"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/hub"
)

// maxKey is S3's limit on a key, in bytes of UTF-8.
const maxKey = 1024

// checkNames refuses a listing that no bucket can hold such that every file can
// be mounted and read again. prefix is the key prefix.
func checkNames(prefix string, files []hub.File) error {
	paths := make(map[string]bool, len(files))
	for _, file := range files {
		if err := checkName(prefix, file.Path); err != nil {
			return err
		}
		if paths[file.Path] {
			return fmt.Errorf("the listing names %q twice", file.Path)
		}
		paths[file.Path] = true
		if file.Size < 0 {
			return fmt.Errorf("the listing gives %q the size %d", file.Path, file.Size)
		}
	}
	for name := range paths {
		for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
			if paths[parent] {
				// A mounted bucket shows only one of the two (mountpoint-s3#725).
				return fmt.Errorf("%q is a file, and a directory of %q", parent, name)
			}
		}
	}
	return nil
}

func checkName(prefix, name string) error {
	switch {
	case name == "" || !utf8.ValidString(name):
		return fmt.Errorf("the listing has a name that is not text: %q", name)
	case strings.Contains(name, "\\"), strings.ContainsFunc(name, record.Hides):
		return fmt.Errorf("the name %q has a character that a mounted bucket cannot show", name)
	case path.Clean("/"+name) != "/"+name:
		// Empty, "." and ".." segments, and a slash at either end.
		return fmt.Errorf("the name %q is not a plain relative path", name)
	case name == record.ManifestName, strings.HasPrefix(name, record.ProbePrefix), strings.HasPrefix(name+"/", record.CheckpointFolder):
		return fmt.Errorf("the name %q is reserved for the sync itself", name)
	case len(path.Join(prefix, name)) > maxKey:
		return fmt.Errorf("the key of %q would be longer than %d bytes", name, maxKey)
	}
	return nil
}

// checkDigests refuses files whose bytes could not be verified.
func checkDigests(files []hub.File) error {
	for _, file := range files {
		if source := sourceDigest(file); source == nil {
			return fmt.Errorf("the Hub states no digest for %q", file.Path)
		}
	}
	return nil
}

// sourceDigest is the digest that the Hub states for a file, or nil.
func sourceDigest(file hub.File) *record.SourceDigest {
	for _, digest := range []record.SourceDigest{{Algorithm: record.DigestSHA256, Value: file.SHA256}, {Algorithm: record.DigestGitSHA1, Value: file.GitSHA1}} {
		length := map[string]int{record.DigestSHA256: 32, record.DigestGitSHA1: 20}[digest.Algorithm]
		if raw, err := hex.DecodeString(digest.Value); err == nil && len(raw) == length {
			return &digest
		}
	}
	return nil
}
