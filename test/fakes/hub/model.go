package hub

import (
	"crypto/sha1" //nolint:gosec // git's object name, not a signature
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

// Model is a repository to serve. The generated files depend on Name, Bytes,
// Shards and Seed alone, and so does the commit id.
type Model struct {
	// Name is owner/name.
	Name string
	// Bytes is the size of all weights together; 0 is 4 MiB.
	Bytes int64
	// Shards is the number of safetensors files; 0 is 2.
	Shards int
	// Seed gives other content to a model of the same name and size.
	Seed uint64
	// Branch is the reference that names this commit; "" is main. Two Models of
	// one Name and different Branch are two commits of one repository.
	Branch string
	// Files adds files, or replaces generated ones of the same path.
	Files map[string][]byte
	// LFS lists paths of Files to serve as LFS files, whatever their size.
	LFS []string
	// Git lists paths to serve as git files, however large.
	Git []string
	// Omit leaves generated files out.
	Omit []string
	// Gated asks for an accepted licence, Private for a token of a member,
	// Disabled makes the repository one that was taken down.
	Gated, Private, Disabled bool
	// RenamedFrom is a former name, which redirects to Name.
	RenamedFrom string
}

// file is one path of a commit.
type file struct {
	path    string
	content content
	sha256  string
	gitSHA1 string
	lfs     bool
}

// pointer is the git blob that stands for an LFS file in the repository.
func (f file) pointer() []byte {
	return fmt.Appendf(nil, "version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", f.sha256, f.content.size)
}

// oid is the git object name, which for an LFS file is that of its pointer.
func (f file) oid() string {
	if f.lfs {
		_, git := bytesContent(f.pointer()).digests()
		return git
	}
	return f.gitSHA1
}

func (f file) etag() string {
	if f.lfs {
		return f.sha256
	}
	return f.gitSHA1
}

// commit is a revision of a repository: its files by path.
type commit struct {
	sha   string
	model Model
	files []file
}

func (c *commit) file(path string) (file, bool) {
	i, found := slices.BinarySearchFunc(c.files, path, func(f file, path string) int { return strings.Compare(f.path, path) })
	if !found {
		return file{}, false
	}
	return c.files[i], true
}

// build makes the commit of a model.
func build(model Model) *commit {
	if model.Bytes == 0 {
		model.Bytes = 4 << 20
	}
	if model.Shards == 0 {
		model.Shards = 2
	}
	contents := generate(model)
	for path, data := range model.Files {
		contents[path] = bytesContent(data)
	}
	for _, path := range model.Omit {
		delete(contents, path)
	}
	commit := &commit{model: model}
	for path, content := range contents {
		sha, git := content.digests()
		lfs := strings.HasSuffix(path, ".safetensors") || content.size > 10<<20 || slices.Contains(model.LFS, path)
		if _, given := model.Files[path]; given && !slices.Contains(model.LFS, path) {
			lfs = content.size > 10<<20
		}
		lfs = lfs && !slices.Contains(model.Git, path)
		commit.files = append(commit.files, file{path: path, content: content, sha256: sha, gitSHA1: git, lfs: lfs})
	}
	slices.SortFunc(commit.files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	name := sha1.New() //nolint:gosec // as above
	fmt.Fprintf(name, "commit %s\n", model.Name)
	for _, f := range commit.files {
		fmt.Fprintf(name, "%s %d %s\n", f.path, f.content.size, f.etag())
	}
	commit.sha = hex.EncodeToString(name.Sum(nil))
	return commit
}

// seedOf mixes a model's identity and a path into the seed of its bytes.
func seedOf(model Model, path string) uint64 {
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%s\x00%d\x00%s", model.Name, model.Seed, path)
	return hash.Sum64()
}
