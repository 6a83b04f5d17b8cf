package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// Revision is what a name such as main means.
type Revision struct {
	// Repo is the repository's present name.
	Repo string
	// Commit is the full commit id, 40 hex digits.
	Commit string
	// Gated and Private say that reading files can need a token.
	Gated, Private bool
}

// File is one file of a commit, with the digest that its bytes must have.
type File struct {
	Path string
	Size int64
	// SHA256 is the digest of an LFS file, "" for a git file.
	SHA256 string
	// GitSHA1 is the git blob name of a git file, "" for an LFS file.
	GitSHA1 string
	XetHash string
}

var commitID = regexp.MustCompile(`^[0-9a-f]{40}$`)

// Resolve asks which commit a revision of a repository is.
func (c *Client) Resolve(ctx context.Context, repo, revision string) (Revision, error) {
	var body struct {
		ID       string `json:"id"`
		SHA      string `json:"sha"`
		Gated    any    `json:"gated"`
		Private  bool   `json:"private"`
		Disabled bool   `json:"disabled"`
	}
	address := c.at("/api/models/"+repo+"/revision/"+revision, "/api/models/"+repo+"/revision/"+url.PathEscape(revision), nil)
	if _, err := c.document(ctx, "resolve "+repo, address, &body); err != nil {
		return Revision{}, err
	}
	if !commitID.MatchString(body.SHA) {
		return Revision{}, &Error{Class: Incompatible, Message: fmt.Sprintf("the answer names no commit (sha %q)", body.SHA), URL: plain(address)}
	}
	if body.Disabled {
		return Revision{}, &Error{Class: Disabled, Message: "Access to this resource is disabled.", URL: plain(address)}
	}
	resolved := Revision{Repo: repo, Commit: body.SHA, Private: body.Private}
	if body.ID != "" {
		resolved.Repo = body.ID
	}
	// false, "auto" or "manual".
	resolved.Gated = body.Gated != nil && body.Gated != false
	return resolved, nil
}

// List returns every file of a commit, over all pages of the listing.
func (c *Client) List(ctx context.Context, repo, commit string) ([]File, error) {
	address := c.at("/api/models/"+repo+"/tree/"+commit, "", url.Values{"recursive": {"true"}, "expand": {"false"}})
	var files []File
	seen := make(map[string]bool)
	for address != nil {
		if seen[address.String()] {
			return nil, &Error{Class: Incompatible, Message: "the listing's pages run in a circle", URL: plain(address)}
		}
		seen[address.String()] = true
		var page []entry
		header, err := c.document(ctx, "list "+repo, address, &page)
		if err != nil {
			return nil, err
		}
		for _, entry := range page {
			if entry.Type == "directory" {
				continue
			}
			file, err := entry.file()
			if err != nil {
				return nil, &Error{Class: Incompatible, Message: err.Error(), URL: plain(address)}
			}
			files = append(files, file)
		}
		if address, err = c.nextPage(header); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// entry is one line of a listing.
type entry struct {
	Type string `json:"type"`
	OID  string `json:"oid"`
	Size int64  `json:"size"`
	LFS  *struct {
		OID         string `json:"oid"`
		Size        int64  `json:"size"`
		PointerSize int64  `json:"pointerSize"`
	} `json:"lfs"`
	XetHash string `json:"xetHash"`
	Path    string `json:"path"`
}

// file takes an entry's digest from the one place that holds it: `lfs.oid` is
// the SHA-256 of an LFS file, and `oid` is then only that of its pointer.
func (e entry) file() (File, error) {
	file := File{Path: e.Path, Size: e.Size, GitSHA1: strings.ToLower(e.OID), XetHash: e.XetHash}
	if e.LFS == nil {
		return file, nil
	}
	file.SHA256 = strings.ToLower(strings.TrimPrefix(e.LFS.OID, "sha256:"))
	file.GitSHA1 = ""
	if e.Size != e.LFS.Size && e.Size != e.LFS.PointerSize {
		return File{}, fmt.Errorf("the listing gives two sizes for %s: %d and %d", e.Path, e.Size, e.LFS.Size)
	}
	file.Size = e.LFS.Size
	return file, nil
}

var nextLink = regexp.MustCompile(`<([^>]*)>\s*;[^,]*rel="?next"?`)

// nextPage is the address of the listing's next page, or nil. Mirrors pass the
// official Hub's link through (hf-mirror-site#65), so only its path and query
// are taken: the token never leaves the endpoint.
func (c *Client) nextPage(header http.Header) (*url.URL, error) {
	for _, link := range header.Values("Link") {
		match := nextLink.FindStringSubmatch(link)
		if match == nil {
			continue
		}
		target, err := url.Parse(match[1])
		if err != nil {
			return nil, &Error{Class: Incompatible, Message: "the listing's next link is not a URL", URL: c.endpoint.String()}
		}
		next := c.at(target.Path, target.EscapedPath(), target.Query())
		if base := c.endpoint.Path; base != "" && strings.HasPrefix(target.Path, base+"/") {
			next.Path, next.RawPath = target.Path, target.RawPath
		}
		return next, nil
	}
	return nil, nil
}

// at is an address below the endpoint. escaped is the escaped form of path
// where that cannot be derived from it.
func (c *Client) at(path, escaped string, query url.Values) *url.URL {
	address := *c.endpoint
	address.Path += path
	address.RawPath = ""
	if escaped != "" {
		address.RawPath = c.endpoint.EscapedPath() + escaped
	}
	address.RawQuery = query.Encode()
	return &address
}

// document reads one JSON answer of the API.
func (c *Client) document(ctx context.Context, what string, address *url.URL, out any) (http.Header, error) {
	var header http.Header
	err := c.retry(ctx, what, nil, func() error {
		if err := c.hold(ctx, bucketAPI); err != nil {
			return err
		}
		response, err := c.get(ctx, http.MethodGet, address, nil)
		if err != nil {
			return unreachable(err)
		}
		if response.StatusCode != http.StatusOK {
			return c.refusal(response, address)
		}
		defer drain(response.Body)
		data, err := io.ReadAll(io.LimitReader(response.Body, 64<<20))
		if err != nil {
			return err
		}
		if err := json.Unmarshal(data, out); err != nil {
			return &Error{Class: Incompatible, Status: response.StatusCode, Message: "the answer is not the Hub's: " + err.Error(), URL: plain(address)}
		}
		header = response.Header
		return nil
	})
	return header, err
}
