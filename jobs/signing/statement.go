package signing

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

const (
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "https://model_signing/signature/v1.0"
	methodFiles   = "files"
)

// gitFiles are never part of an OMS signature where they are at the top.
var gitFiles = []string{".git", ".gitattributes", ".github", ".gitignore"}

// statement is an in-toto statement with OMS's predicate.
type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     predicate `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

type predicate struct {
	Resources     []resource     `json:"resources"`
	Serialization *serialization `json:"serialization"`
}

type resource struct {
	Name      string `json:"name"`
	Digest    string `json:"digest"`
	Algorithm string `json:"algorithm"`
}

type serialization struct {
	Method        string   `json:"method"`
	HashType      string   `json:"hash_type"`
	AllowSymlinks bool     `json:"allow_symlinks"`
	IgnorePaths   []string `json:"ignore_paths"`
}

// newStatement lists the files of a sealed manifest. What lies beside them
// below the prefix is ignored by name, since OMS's verifiers refuse a file that
// is neither listed nor ignored.
func newStatement(manifest record.Manifest) (statement, error) {
	ignored := append(slices.Clone(gitFiles), record.ManifestName, record.SignatureName)
	slices.Sort(ignored)
	made := statement{
		Type: statementType, PredicateType: predicateType,
		Subject: []subject{{Name: path.Base(manifest.ModelID), Digest: map[string]string{"sha256": manifest.RootDigest}}},
		Predicate: predicate{Resources: []resource{}, Serialization: &serialization{
			Method: methodFiles, HashType: record.DigestSHA256, IgnorePaths: ignored,
		}},
	}
	for _, file := range manifest.Files {
		if within(file.Path, []string{record.SignatureName}) {
			return statement{}, fmt.Errorf("sign %s: the model has a file %s of its own", manifest.ModelID, file.Path)
		}
		if !within(file.Path, ignored) {
			made.Predicate.Resources = append(made.Predicate.Resources, resource{Name: file.Path, Digest: file.SHA256, Algorithm: record.DigestSHA256})
		}
	}
	if root := made.root(); root != manifest.RootDigest || len(made.Predicate.Resources) == 0 {
		return statement{}, fmt.Errorf("sign %s: its files' root digest is %s, the manifest says %s", manifest.ModelID, root, manifest.RootDigest)
	}
	return made, nil
}

// parseStatement reads a payload whose signature is right already.
func parseStatement(payload []byte) (statement, error) {
	var s statement
	if err := json.Unmarshal(payload, &s); err != nil {
		return s, fmt.Errorf("the signed statement cannot be read: %w", err)
	}
	switch how := s.Predicate.Serialization; {
	case s.Type != statementType:
		return s, fmt.Errorf("the signed statement is of type %q, not %s", s.Type, statementType)
	case s.PredicateType != predicateType:
		return s, fmt.Errorf("the signed statement is about %q, not %s", s.PredicateType, predicateType)
	case how == nil || len(s.Predicate.Resources) == 0 || len(s.Subject) != 1:
		return s, fmt.Errorf("the signed statement lists no files")
	case how.Method != methodFiles || how.HashType != record.DigestSHA256:
		return s, fmt.Errorf("the signed statement has %s of method %q: only sha256 of files can be compared", how.HashType, how.Method)
	}
	seen := make(map[string]bool, len(s.Predicate.Resources))
	for _, file := range s.Predicate.Resources {
		if raw, err := hex.DecodeString(file.Digest); err != nil || len(raw) != sha256.Size || file.Algorithm != record.DigestSHA256 || seen[file.Name] {
			return s, fmt.Errorf("the signed statement has no single SHA-256 for %q", file.Name)
		}
		seen[file.Name] = true
	}
	if root := s.root(); root != s.Subject[0].Digest["sha256"] {
		return s, fmt.Errorf("the signed statement's subject is %s, its files' root digest %s", s.Subject[0].Digest["sha256"], root)
	}
	return s, nil
}

// root is the SHA-256 over the raw digests of the resources in order of their
// names (OMS 1.0, section 6.5.1).
func (s statement) root() string {
	sorted := slices.SortedFunc(slices.Values(s.Predicate.Resources), func(a, b resource) int { return strings.Compare(a.Name, b.Name) })
	sum := sha256.New()
	for _, file := range sorted {
		raw, _ := hex.DecodeString(file.Digest)
		sum.Write(raw)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// compare returns how the manifest differs from what was signed: each file on
// one side must be on the other with the same digest, but for what the
// signature ignores by name.
func (s statement) compare(manifest record.Manifest) []record.ModelProblem {
	problems := []record.ModelProblem{}
	differ := func(name, expected, found string) {
		problems = append(problems, record.ModelProblem{Path: name, Kind: record.ProblemSignature, Expected: expected, Found: found})
	}
	ignored := slices.Concat(gitFiles, []string{record.SignatureName}, s.Predicate.Serialization.IgnorePaths)
	signed := make(map[string]string, len(s.Predicate.Resources))
	for _, file := range s.Predicate.Resources {
		signed[file.Name] = file.Digest
	}
	for _, file := range manifest.Files {
		digest, found := signed[file.Path]
		switch {
		case found && digest != file.SHA256:
			differ(file.Path, "signed as "+digest, file.SHA256)
		case !found && !within(file.Path, ignored):
			differ(file.Path, "signed", "not part of the signature")
		}
		delete(signed, file.Path)
	}
	for name := range signed {
		differ(name, "signed as "+signed[name], "not in the manifest")
	}
	slices.SortFunc(problems, func(a, b record.ModelProblem) int { return strings.Compare(a.Path, b.Path) })
	return problems
}

// within says whether name is one of the paths or lies below one.
func within(name string, paths []string) bool {
	return slices.ContainsFunc(paths, func(path string) bool { return name == path || strings.HasPrefix(name, path+"/") })
}
