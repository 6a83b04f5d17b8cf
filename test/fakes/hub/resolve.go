package hub

import (
	"compress/gzip"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const amzTime = "20060102T150405Z"

// resolve answers GET and HEAD /{owner}/{name}/resolve/{rev}/{path}: the bytes
// of a git file, or a redirect to the CDN for an LFS file.
func (h *Hub) resolve(w http.ResponseWriter, r *http.Request) {
	target := h.lookup(w, r, true)
	if target == nil {
		return
	}
	found, ok := target.file(r.PathValue("path"))
	if !ok {
		refuse(w, http.StatusNotFound, "EntryNotFound", "Entry not found")
		return
	}
	header := w.Header()
	header.Set("ETag", strconv.Quote(found.etag()))
	if !h.faults.take(FaultMirror, found.path) {
		header.Set("X-Repo-Commit", target.sha)
		if found.lfs {
			header.Set("X-Linked-Etag", strconv.Quote(found.sha256))
			header.Set("X-Linked-Size", strconv.FormatInt(found.content.size, 10))
		}
	}
	if !found.lfs {
		h.serve(w, r, found)
		return
	}
	header.Set("Location", h.sign(target, found))
	w.WriteHeader(http.StatusFound)
}

// sign makes the expiring CDN URL of a file.
func (h *Hub) sign(target *commit, f file) string {
	query := url.Values{
		"X-Amz-Date":    {h.options.Now().UTC().Format(amzTime)},
		"X-Amz-Expires": {strconv.Itoa(int(h.options.URLValidity / time.Second))},
		"repo":          {target.model.Name},
		"path":          {f.path},
		"rev":           {target.sha},
	}
	path := "/xet-bridge/" + f.sha256
	query.Set("X-Amz-Signature", h.signature(path, query))
	return strings.TrimSuffix(h.options.CDN, "/") + path + "?" + query.Encode()
}

func (h *Hub) signature(path string, query url.Values) string {
	signed := url.Values{}
	for key, values := range query {
		if key != "X-Amz-Signature" {
			signed[key] = values
		}
	}
	mac := hmac.New(sha256.New, h.secret)
	fmt.Fprintf(mac, "%s?%s", path, signed.Encode())
	return hex.EncodeToString(mac.Sum(nil))
}

// cdn answers GET and HEAD of a signed URL.
func (h *Hub) cdn(w http.ResponseWriter, r *http.Request) {
	h.stats.add(func(s *Stats) { s.CDNRequests++ })
	query := r.URL.Query()
	path := query.Get("path")
	if status, wait, ok := h.faults.status(OnCDN, path); ok {
		failWith(w, status, wait)
		return
	}
	if r.Header.Get("Authorization") != "" {
		h.stats.add(func(s *Stats) { s.CDNTokens++ })
		refuseXML(w, http.StatusBadRequest, "InvalidArgument", "Only one auth mechanism allowed")
		return
	}
	signed, err := time.Parse(amzTime, query.Get("X-Amz-Date"))
	validity, errValidity := strconv.Atoi(query.Get("X-Amz-Expires"))
	if err != nil || errValidity != nil || !hmac.Equal([]byte(query.Get("X-Amz-Signature")), []byte(h.signature(r.URL.Path, query))) {
		refuseXML(w, http.StatusForbidden, "SignatureDoesNotMatch", "The request signature we calculated does not match")
		return
	}
	if h.options.Now().After(signed.Add(time.Duration(validity)*time.Second)) || h.faults.take(FaultExpired, path) {
		refuseXML(w, http.StatusForbidden, "AccessDenied", "Request has expired")
		return
	}
	commit := h.repos[query.Get("repo")][query.Get("rev")]
	if commit == nil {
		refuseXML(w, http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
		return
	}
	found, ok := commit.file(path)
	if !ok {
		refuseXML(w, http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
		return
	}
	if found.content.size > h.options.PlainLimit && r.Header.Get("Range") == "" {
		refuseXML(w, http.StatusBadRequest, "BadRequest", "The file is too large for a request without a range")
		return
	}
	w.Header().Set("ETag", strconv.Quote(found.sha256))
	h.serve(w, r, found)
}

func refuseXML(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>%s</Code><Message>%s</Message></Error>", code, message)
}

// serve sends the body of a file, with the faults that are switched on for it.
func (h *Hub) serve(w http.ResponseWriter, r *http.Request, f file) {
	if r.Method == http.MethodGet {
		h.stats.add(func(s *Stats) { s.ByPath[f.path]++ })
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	counted := &sender{ResponseWriter: w, hub: h, path: f.path}
	if h.faults.take(FaultFull, f.path) {
		r = r.Clone(r.Context())
		r.Header.Del("Range")
	}
	zipped := h.faults.take(FaultGzip, f.path)
	if !f.lfs && (zipped || strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")) {
		// As the production CDN does: no length, and a Range is ignored.
		w.Header().Set("Content-Encoding", "gzip")
		_ = http.NewResponseController(w).Flush()
		writer := gzip.NewWriter(counted)
		_, _ = io.Copy(writer, io.NewSectionReader(f.content, 0, f.content.size))
		_ = writer.Close()
		return
	}
	if fault, ok := h.faults.find(FaultCut, f.path); ok {
		counted.cutAfter = &fault.After
	}
	if fault, ok := h.faults.find(FaultSlow, f.path); ok {
		counted.bytesPerSecond = fault.After
	}
	if h.faults.take(FaultStall, f.path) {
		counted.stall = r.Context()
	}
	var body io.ReadSeeker = io.NewSectionReader(f.content, 0, f.content.size)
	if fault, ok := h.faults.find(FaultCorrupt, f.path); ok {
		body = io.NewSectionReader(corrupted{f.content, fault.After}, 0, f.content.size)
	}
	http.ServeContent(counted, r, "", time.Time{}, body)
}
