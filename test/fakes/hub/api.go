package hub

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// refuse answers with an error in the Hub's form.
func refuse(w http.ResponseWriter, status int, code, message string) {
	if code != "" {
		w.Header().Set("X-Error-Code", code)
	}
	w.Header().Set("X-Error-Message", message)
	answer(w, status, map[string]string{"error": message})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	// The client has gone away if this fails.
	_ = json.NewEncoder(w).Encode(body)
}

// lookup finds the commit that a request names. It answers the request itself,
// and returns nil, where there is none or where it is not for this client.
// contents says whether files are asked for: the Hub shows the listing of a
// gated repository to anyone, and its files only to those who accepted.
func (h *Hub) lookup(w http.ResponseWriter, r *http.Request, contents bool) *commit {
	token, known := h.token(r)
	if r.Header.Get("Authorization") != "" && !known {
		refuse(w, http.StatusUnauthorized, "", "Invalid credentials in Authorization header")
		return nil
	}
	name := r.PathValue("owner") + "/" + r.PathValue("name")
	if current, renamed := h.renamed[name]; renamed {
		target := *r.URL
		target.Path = strings.Replace(r.URL.Path, name, current, 1)
		target.RawPath = strings.Replace(r.URL.EscapedPath(), name, current, 1)
		// Without the query, as reported in huggingface_hub#4637.
		target.RawQuery = ""
		w.Header().Set("Location", target.RequestURI())
		answer(w, http.StatusTemporaryRedirect, map[string]string{"error": "moved"})
		return nil
	}
	refs, found := h.repos[name]
	if !found {
		status := http.StatusNotFound
		if !known {
			// Without a token the Hub hides whether a repository exists.
			status = http.StatusUnauthorized
		}
		refuse(w, status, "RepoNotFound", "Repository not found")
		return nil
	}
	rev := r.PathValue("rev")
	if rev == "" {
		rev = "main"
	}
	target, found := refs[rev]
	for ref, candidate := range refs {
		// The Hub takes an abbreviated commit id.
		if !found && len(rev) >= 7 && len(ref) == 40 && strings.HasPrefix(ref, rev) {
			target, found = candidate, true
		}
	}
	var model Model
	for _, any := range refs {
		model = any.model
	}
	switch {
	case model.Private && !token.Member:
		if known {
			refuse(w, http.StatusNotFound, "RepoNotFound", "Repository not found")
		} else {
			refuse(w, http.StatusUnauthorized, "RepoNotFound", "Repository not found")
		}
		return nil
	case model.Disabled:
		refuse(w, http.StatusForbidden, "", "Access to this resource is disabled.")
		return nil
	case model.Gated && contents && !known:
		refuse(w, http.StatusUnauthorized, "GatedRepo", "Access to model "+name+" is restricted. You must have access to it and be authenticated to access it. Please log in.")
		return nil
	case model.Gated && contents && !token.Accepted:
		refuse(w, http.StatusForbidden, "GatedRepo", "Access to model "+name+" is restricted and you are not in the authorized list. Visit the model page to ask for access.")
		return nil
	case !found:
		refuse(w, http.StatusNotFound, "RevisionNotFound", "Invalid rev id: "+rev)
		return nil
	}
	return target
}

func (h *Hub) token(r *http.Request) (Token, bool) {
	value, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !found {
		return Token{}, false
	}
	i := slices.IndexFunc(h.options.Tokens, func(t Token) bool { return t.Value == value })
	if i < 0 {
		return Token{}, false
	}
	return h.options.Tokens[i], true
}

// revision answers GET /api/models/{owner}/{name}/revision/{rev}.
func (h *Hub) revision(w http.ResponseWriter, r *http.Request) {
	target := h.lookup(w, r, false)
	if target == nil {
		return
	}
	type lfs struct {
		SHA256      string `json:"sha256"`
		Size        int64  `json:"size"`
		PointerSize int    `json:"pointerSize"`
	}
	type sibling struct {
		Name   string `json:"rfilename"`
		Size   *int64 `json:"size,omitempty"`
		BlobID string `json:"blobId,omitempty"`
		LFS    *lfs   `json:"lfs,omitempty"`
	}
	blobs := r.URL.Query().Get("blobs") == "true"
	siblings := make([]sibling, 0, len(target.files))
	for _, f := range target.files {
		entry := sibling{Name: f.path}
		if blobs {
			entry.Size, entry.BlobID = &f.content.size, f.oid()
			if f.lfs {
				entry.LFS = &lfs{SHA256: f.sha256, Size: f.content.size, PointerSize: len(f.pointer())}
			}
		}
		siblings = append(siblings, entry)
	}
	var gated any = false
	if target.model.Gated {
		gated = "manual"
	}
	answer(w, http.StatusOK, map[string]any{
		"id": target.model.Name, "modelId": target.model.Name, "sha": target.sha, "private": target.model.Private,
		"disabled": target.model.Disabled, "gated": gated, "siblings": siblings,
	})
}

type treeEntry struct {
	Type    string   `json:"type"`
	OID     string   `json:"oid"`
	Size    int64    `json:"size"`
	LFS     *treeLFS `json:"lfs,omitempty"`
	XetHash string   `json:"xetHash,omitempty"`
	Path    string   `json:"path"`
}

type treeLFS struct {
	OID         string `json:"oid"`
	Size        int64  `json:"size"`
	PointerSize int    `json:"pointerSize"`
}

// tree answers GET /api/models/{owner}/{name}/tree/{rev}?recursive=true.
func (h *Hub) tree(w http.ResponseWriter, r *http.Request) {
	target := h.lookup(w, r, false)
	if target == nil {
		return
	}
	query := r.URL.Query()
	entries := treeOf(target, query.Get("recursive") == "true")
	start := 0
	if cursor := query.Get("cursor"); cursor != "" {
		value, err := strconv.Atoi(cursor)
		if err != nil || value < 0 || value > len(entries) {
			refuse(w, http.StatusBadRequest, "", "Invalid cursor")
			return
		}
		start = value
	}
	end := min(len(entries), start+h.options.PageSize)
	if end < len(entries) {
		query.Set("cursor", strconv.Itoa(end))
		next := url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: query.Encode()}
		link := next.String()
		if h.options.NextHost != "" {
			link = h.options.NextHost + next.RequestURI()
		}
		w.Header().Set("Link", fmt.Sprintf("<%s>; rel=\"next\"", link))
	}
	answer(w, http.StatusOK, entries[start:end])
}

func treeOf(target *commit, recursive bool) []treeEntry {
	entries := []treeEntry{}
	seen := make(map[string]bool)
	for _, f := range target.files {
		segments := strings.Split(f.path, "/")
		for i := 1; i < len(segments); i++ {
			directory := strings.Join(segments[:i], "/")
			if (recursive || i == 1) && !seen[directory] {
				seen[directory] = true
				entries = append(entries, treeEntry{Type: "directory", OID: strings.Repeat("0", 40), Path: directory})
			}
		}
		if !recursive && len(segments) > 1 {
			continue
		}
		entry := treeEntry{Type: "file", OID: f.oid(), Size: f.content.size, Path: f.path}
		if f.lfs {
			entry.LFS = &treeLFS{OID: f.sha256, Size: f.content.size, PointerSize: len(f.pointer())}
			// A Merkle hash of chunks in production: 64 hex digits that are
			// not the file's SHA-256.
			_, git := bytesContent([]byte(f.sha256)).digests()
			entry.XetHash = git + git[:24]
		}
		entries = append(entries, entry)
	}
	return entries
}
