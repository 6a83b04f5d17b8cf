//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// small bounds what the sink keeps and checks: objects such as the manifest.
// It counts the bytes of anything larger and believes its checksum.
const small = 1 << 20

// sink is an S3 server that keeps no large object. It has what sync-model asks
// for, so that the program under measurement is the whole one, and memory can
// be measured with models that are larger than the machine's.
type sink struct {
	mu      sync.Mutex
	objects map[string]*sunk
	uploads map[string]*sunk
	// unread leaves large bodies unread: then no client has to send them.
	unread bool
}

// sunk is an object or an unfinished upload.
type sunk struct {
	key, id, checksum string
	size              int64
	data              []byte
	meta              http.Header
	parts             map[int]*sunk
}

func newSink() *sink {
	return &sink{objects: make(map[string]*sunk), uploads: make(map[string]*sunk)}
}

func serveSink(ctx context.Context) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(map[string]string{"URL": "http://" + listener.Addr().String()}); err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- http.Serve(listener, newSink()) }() //nolint:gosec // on loopback, for one run
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	query := r.URL.Query()
	var body *sunk
	if r.Method == http.MethodPut {
		var ok bool
		if body, ok = s.receive(r, key); !ok {
			refuse(w, http.StatusBadRequest, "BadDigest")
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	upload, object := s.uploads[query.Get("uploadId")], s.objects[key]
	switch {
	case key == "" && r.Method == http.MethodHead:
	case key == "" && query.Has("uploads"):
		answer(w, "ListMultipartUploadsResult", "")
	case key == "":
		s.list(w, query.Get("prefix"))
	case query.Has("uploads"):
		id := strconv.Itoa(len(s.uploads) + 1)
		s.uploads[id] = &sunk{key: key, id: id, meta: metadata(r.Header), parts: make(map[int]*sunk)}
		answer(w, "InitiateMultipartUploadResult", "<UploadId>"+id+"</UploadId>")
	case query.Has("uploadId") && upload == nil:
		refuse(w, http.StatusNotFound, "NoSuchUpload")
	case query.Has("uploadId"):
		s.part(w, r, upload, body)
	case r.Method == http.MethodPut && object != nil && r.Header.Get("If-None-Match") == "*":
		refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
	case r.Method == http.MethodPut:
		body.meta = metadata(r.Header)
		s.objects[key] = body
		body.describe(w)
	case r.Method == http.MethodDelete:
		delete(s.objects, key)
		w.WriteHeader(http.StatusNoContent)
	case object == nil:
		refuse(w, http.StatusNotFound, "NoSuchKey")
	default:
		object.describe(w)
		w.Header().Set("Content-Length", strconv.FormatInt(object.size, 10))
		if r.Method == http.MethodGet {
			_, _ = w.Write(object.data) // a client that went away needs no answer
		}
	}
}

// part serves the requests about an upload.
func (s *sink) part(w http.ResponseWriter, r *http.Request, upload, body *sunk) {
	switch r.Method {
	case http.MethodPut:
		number, _ := strconv.Atoi(r.URL.Query().Get("partNumber"))
		upload.parts[number] = body
		body.describe(w)
	case http.MethodGet:
		var list strings.Builder
		for _, number := range slices.Sorted(maps.Keys(upload.parts)) {
			part := upload.parts[number]
			fmt.Fprintf(&list, "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag><Size>%d</Size><ChecksumSHA256>%s</ChecksumSHA256></Part>", number, part.id, part.size, part.checksum)
		}
		answer(w, "ListPartsResult", list.String())
	case http.MethodDelete:
		delete(s.uploads, upload.id)
		w.WriteHeader(http.StatusNoContent)
	case http.MethodPost:
		object, sum := &sunk{key: upload.key, id: upload.id, meta: upload.meta}, sha256.New()
		for number := range len(upload.parts) {
			part := upload.parts[number+1]
			if part == nil {
				refuse(w, http.StatusBadRequest, "InvalidPart")
				return
			}
			raw, _ := base64.StdEncoding.DecodeString(part.checksum)
			sum.Write(raw)
			object.size += part.size
		}
		object.checksum = fmt.Sprintf("%s-%d", base64.StdEncoding.EncodeToString(sum.Sum(nil)), len(upload.parts))
		delete(s.uploads, upload.id)
		s.objects[upload.key] = object
		answer(w, "CompleteMultipartUploadResult", "<ETag>"+upload.id+"</ETag><ChecksumSHA256>"+object.checksum+"</ChecksumSHA256>")
	}
}

// receive takes a body; ok is false where a small one has another checksum.
func (s *sink) receive(r *http.Request, key string) (body *sunk, ok bool) {
	body = &sunk{key: key, id: "etag", size: r.ContentLength, checksum: r.Header.Get("X-Amz-Checksum-Sha256")}
	decoded := r.Header.Get("X-Amz-Decoded-Content-Length")
	if decoded != "" {
		body.size, _ = strconv.ParseInt(decoded, 10, 64)
	}
	if body.size > small {
		if !s.unread {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		return body, true
	}
	data, err := io.ReadAll(r.Body)
	if decoded != "" {
		data, err = unchunk(data)
	}
	sum := sha256.Sum256(data)
	got := base64.StdEncoding.EncodeToString(sum[:])
	ok = err == nil && (body.checksum == "" || body.checksum == got)
	body.data, body.checksum = data, got
	return body, ok
}

// unchunk returns the content of an aws-chunked body of one or more chunks.
func unchunk(data []byte) (content []byte, err error) {
	reader := bufio.NewReader(bytes.NewReader(data))
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return nil, err
		}
		size, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		n, err := strconv.ParseInt(size, 16, 32)
		if err != nil || n == 0 {
			return content, err
		}
		chunk := make([]byte, n)
		if _, err := io.ReadFull(reader, chunk); err != nil {
			return nil, err
		}
		content = append(content, chunk...)
		if _, err := reader.Discard(2); err != nil {
			return nil, err
		}
	}
}

func metadata(header http.Header) http.Header {
	kept := make(http.Header)
	for name, values := range header {
		if strings.HasPrefix(name, "X-Amz-Meta-") {
			kept[name] = values
		}
	}
	return kept
}

func (o *sunk) describe(w http.ResponseWriter) {
	maps.Copy(w.Header(), o.meta)
	w.Header().Set("ETag", o.id)
	if o.checksum != "" {
		w.Header().Set("X-Amz-Checksum-Sha256", o.checksum)
	}
}

func (s *sink) list(w http.ResponseWriter, prefix string) {
	var list bytes.Buffer
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		if strings.HasPrefix(key, prefix) {
			list.WriteString("<Contents><Key>")
			_ = xml.EscapeText(&list, []byte(key)) // a buffer does not fail
			fmt.Fprintf(&list, "</Key><Size>%d</Size></Contents>", s.objects[key].size)
		}
	}
	answer(w, "ListBucketResult", list.String())
}

func answer(w http.ResponseWriter, name, content string) {
	w.Header().Set("Content-Type", "application/xml")
	fmt.Fprintf(w, "<%s>%s</%s>", name, content, name)
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>refused</Message></Error>", code)
}
