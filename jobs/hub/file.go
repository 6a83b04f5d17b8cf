package hub

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Source is one file of a commit, open for reading. Ranges of it may be read
// by many goroutines; they share the CDN URL for as long as it is valid.
type Source struct {
	client *Client
	repo   string
	commit string
	file   File

	mu       sync.Mutex
	location *url.URL
	until    time.Time
}

const (
	// urlMargin is how long a CDN URL must still be valid to be used again.
	urlMargin = 10 * time.Minute
	// maxDiscard is how many bytes are read and thrown away at most where a
	// server answers a range with the whole file.
	maxDiscard = 64 << 20
)

// Open makes a Source; it asks nothing of the Hub yet.
func (c *Client) Open(repo, commit string, file File) *Source {
	return &Source{client: c, repo: repo, commit: commit, file: file}
}

// Probe asks for the file's headers alone. The listing of a gated repository
// is public, so this is what tells whether its files can be read.
func (s *Source) Probe(ctx context.Context) error {
	address := s.address()
	return s.client.retry(ctx, s.file.Path, nil, func() error {
		if err := s.client.hold(ctx, bucketResolvers); err != nil {
			return err
		}
		response, err := s.client.get(ctx, http.MethodHead, address, nil)
		if err != nil {
			return unreachable(err)
		}
		defer drain(response.Body)
		if response.StatusCode >= 400 {
			return s.client.refusal(response, address)
		}
		return s.checkHub(response)
	})
}

// Read fills buffer with the file's bytes from offset. What breaks off is
// resumed where it stopped; ranges keep the request below the CDN's limit of
// 50 GB and within the life of its URLs.
func (s *Source) Read(ctx context.Context, offset int64, buffer []byte) error {
	filled := 0
	return s.client.retry(ctx, s.file.Path, func() int64 { return int64(filled) }, func() error {
		if len(buffer) == filled {
			return nil
		}
		n, err := s.attempt(ctx, offset+int64(filled), buffer[filled:])
		filled += n
		if err == nil && filled < len(buffer) {
			err = io.ErrUnexpectedEOF
		}
		return err
	})
}

// Forget drops the CDN URL, so that the next read asks the Hub for a new one.
func (s *Source) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.location = nil
}

func (s *Source) address() *url.URL {
	segments := strings.Split(s.file.Path, "/")
	for i, segment := range segments {
		segments[i] = url.PathEscape(segment)
	}
	base := "/" + s.repo + "/resolve/" + s.commit + "/"
	return s.client.at(base+s.file.Path, base+strings.Join(segments, "/"), nil)
}

// attempt reads from one response as much as it gives. It returns how many
// bytes at the start of buffer are good.
func (s *Source) attempt(parent context.Context, offset int64, buffer []byte) (int, error) {
	if s.known() == nil {
		if err := s.client.hold(parent, bucketResolvers); err != nil {
			return 0, err
		}
	}
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	stalled := time.AfterFunc(s.client.options.Stall, func() {
		cancel(fmt.Errorf("no bytes for %s", s.client.options.Stall))
	})
	defer stalled.Stop()
	response, err := s.request(ctx, offset, len(buffer))
	if err != nil {
		return 0, causeOf(ctx, err)
	}
	defer response.Body.Close()
	body, err := s.body(response, offset)
	if err != nil {
		return 0, causeOf(ctx, err)
	}
	n := 0
	for n < len(buffer) {
		got, err := body.Read(buffer[n:])
		n += got
		s.client.read.Add(int64(got))
		if got > 0 {
			stalled.Reset(s.client.options.Stall)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return n, causeOf(ctx, err)
		}
	}
	// The end of the body, so that the connection goes back to the pool.
	_, _ = io.CopyN(io.Discard, body, 1)
	return n, nil
}

// causeOf prefers the reason for which a request was broken off here.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// request sends the request for a range, by the known CDN URL or by the Hub.
func (s *Source) request(ctx context.Context, offset int64, length int) (*http.Response, error) {
	header := http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", offset, offset+int64(length)-1)}}
	location := s.known()
	if location == nil {
		address := s.address()
		response, err := s.client.get(ctx, http.MethodGet, address, header)
		if err != nil {
			return nil, unreachable(err)
		}
		if response.StatusCode >= 400 {
			return nil, s.refused(response, address)
		}
		if err := s.checkHub(response); err != nil {
			drain(response.Body)
			return nil, err
		}
		location = redirect(response, response.Request.URL)
		if location == nil {
			return response, nil
		}
		drain(response.Body)
		s.remember(location)
	}
	response, err := s.client.get(ctx, http.MethodGet, location, header)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 {
		return nil, s.refused(response, location)
	}
	return response, nil
}

// refused is the error of a response to a file request. Behind the CDN a 403
// (and on some a 401 or 400) means that the URL expired, not that the model is
// gated (transformers#45797, xet-core#238).
func (s *Source) refused(response *http.Response, address *url.URL) error {
	problem := s.client.refusal(response, address)
	if problem.Status == http.StatusRequestedRangeNotSatisfiable {
		problem.Class, problem.Message = Transient, "the file is shorter than the listing says"
	}
	if !sameOrigin(address, s.client.endpoint) {
		s.Forget()
		switch problem.Status {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusBadRequest, http.StatusNotFound:
			problem.Class = Expired
		}
		if problem.Message == "" {
			problem.Message = "the file host refused the URL that the Hub gave"
		}
	}
	return problem
}

// checkHub compares what the Hub says about the file with the plan. Mirrors
// leave these headers out; where they are, they must agree.
func (s *Source) checkHub(response *http.Response) error {
	if commit := response.Header.Get("X-Repo-Commit"); commit != "" && commit != s.commit {
		return &Error{Class: Incompatible, Message: fmt.Sprintf("asked for commit %s of %s, the Hub answers with %s", s.commit, s.file.Path, commit), URL: plain(response.Request.URL)}
	}
	linked := strings.Trim(strings.TrimPrefix(response.Header.Get("X-Linked-Etag"), "W/"), `"`)
	if len(linked) == 64 && s.file.SHA256 != "" && !strings.EqualFold(linked, s.file.SHA256) {
		return &Error{Class: Incompatible, Message: fmt.Sprintf("the listing and the file headers give two digests for %s", s.file.Path), URL: plain(response.Request.URL)}
	}
	return nil
}

// body positions a response's body at offset of the file.
func (s *Source) body(response *http.Response, offset int64) (io.Reader, error) {
	var body io.Reader = response.Body
	switch encoding := response.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
	case "gzip":
		// Packed against our word; only a whole file can be unpacked.
		if response.StatusCode != http.StatusOK {
			return nil, errors.New("the range came gzip-compressed")
		}
		unpacked, err := gzip.NewReader(response.Body)
		if err != nil {
			return nil, err
		}
		body = unpacked
	default:
		return nil, &Error{Class: Incompatible, Message: fmt.Sprintf("%s came with Content-Encoding %q", s.file.Path, encoding), URL: plain(response.Request.URL)}
	}
	if response.StatusCode == http.StatusPartialContent {
		var from int64
		if span := response.Header.Get("Content-Range"); span != "" {
			if _, err := fmt.Sscanf(span, "bytes %d-", &from); err != nil || from != offset {
				return nil, fmt.Errorf("asked for bytes from %d, got %q", offset, span)
			}
		}
		return body, nil
	}
	// The whole file in place of a range. Taking it for the range would put
	// its beginning into the middle of the file (huggingface_hub#3778).
	if offset > maxDiscard {
		s.Forget()
		return nil, errors.New("the server ignores ranges")
	}
	if _, err := io.CopyN(io.Discard, body, offset); err != nil {
		return nil, err
	}
	return body, nil
}

// known is the CDN URL, while it is valid for long enough.
func (s *Source) known() *url.URL {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.location == nil || s.client.options.Now().Add(urlMargin).After(s.until) {
		return nil
	}
	return s.location
}

// remember keeps a CDN URL that states its end, as `X-Amz-Date` with
// `X-Amz-Expires` or as `Expires` in epoch seconds. One request to the Hub then
// serves many ranges, which its rate limit counts.
func (s *Source) remember(location *url.URL) {
	query := location.Query()
	var until time.Time
	if signed, err := time.Parse("20060102T150405Z", query.Get("X-Amz-Date")); err == nil {
		if seconds, err := strconv.Atoi(query.Get("X-Amz-Expires")); err == nil {
			until = signed.Add(time.Duration(seconds) * time.Second)
		}
	} else if epoch, err := strconv.ParseInt(query.Get("Expires"), 10, 64); err == nil {
		until = time.Unix(epoch, 0)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.location, s.until = location, until
}

// unreachable marks the failures to get a connection at all: a name that does
// not resolve, or an address that takes none. They are retried as any other,
// a name server can be late, and keep their class when given up.
func unreachable(err error) error {
	var dial *net.OpError
	var dns *net.DNSError
	if errors.As(err, &dns) || (errors.As(err, &dial) && dial.Op == "dial") {
		problem := classify(err)
		problem.NoConnection = true
		return problem
	}
	return err
}
