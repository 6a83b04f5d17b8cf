package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Class says what an error of the Hub means for the caller.
type Class int

const (
	// Transient may pass: a cut stream, a busy server.
	Transient Class = iota
	// RateLimited passes at a time that the Hub states.
	RateLimited
	// Expired is a CDN URL that no longer works.
	Expired
	// NoRevision: the repository is there, the revision is not.
	NoRevision
	// NoEntry: the revision is there, the file is not.
	NoEntry
	// NoRepository: it does not exist, or is hidden from this token. The Hub
	// does not say which.
	NoRepository
	// Gated: the licence was not accepted, or nobody is logged in.
	Gated
	// BadToken: the token is not valid, which fails for public models too.
	BadToken
	// Forbidden: the token may not read this repository.
	Forbidden
	// Disabled: the Hub took the repository down.
	Disabled
	// Incompatible: the answer is not one that the Hub would give.
	Incompatible
	// Refused is any other answer of status 4xx.
	Refused
)

// Error is what went wrong with a request.
type Error struct {
	Class   Class
	Status  int
	Message string
	// URL is the address without its query.
	URL string
	// LoggedIn says whether a token was sent.
	LoggedIn bool
	// NoConnection: nobody answered at that address.
	NoConnection bool
	// Wait is the pause that the server asked for.
	Wait time.Duration
	// Attempts is how often it was tried, where that is why it was given up.
	Attempts int
	Err      error
}

func (e *Error) Error() string {
	var text strings.Builder
	switch {
	case e.Message != "":
		text.WriteString(e.Message)
	case e.Err != nil:
		text.WriteString(e.Err.Error())
	default:
		text.WriteString(http.StatusText(e.Status))
	}
	if e.Status != 0 {
		fmt.Fprintf(&text, " (status %d from %s)", e.Status, e.URL)
	} else if e.URL != "" && e.Err == nil {
		fmt.Fprintf(&text, " (%s)", e.URL)
	}
	if e.Attempts > 1 {
		fmt.Fprintf(&text, ", %d attempts", e.Attempts)
	}
	return text.String()
}

func (e *Error) Unwrap() error { return e.Err }

// classify makes an Error of any failure of an attempt.
func classify(err error) *Error {
	var problem *Error
	if errors.As(err, &problem) {
		return problem
	}
	// net/http puts the whole URL into its errors, and that of the CDN is
	// signed.
	var request *url.Error
	if errors.As(err, &request) {
		address, parseErr := url.Parse(request.URL)
		if parseErr != nil {
			address = &url.URL{}
		}
		return &Error{Class: Transient, URL: plain(address), Err: fmt.Errorf("%s %s: %w", strings.ToLower(request.Op), plain(address), request.Err)}
	}
	return &Error{Class: Transient, Err: err}
}

// refusal reads what a response of the Hub's own origin that is not a success
// means. X-Error-Code says it better than the status.
func (c *Client) refusal(response *http.Response, address *url.URL) *Error {
	body, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
	drain(response.Body)
	problem := &Error{
		Status: response.StatusCode, Message: response.Header.Get("X-Error-Message"), URL: plain(address),
		LoggedIn: c.options.Token != "" && sameOrigin(address, c.endpoint),
	}
	if problem.Message == "" {
		var said struct{ Error string }
		if json.Unmarshal(body, &said) == nil {
			problem.Message = said.Error
		}
	}
	problem.Class, problem.Wait = meaning(response, problem, c.options.Now())
	return problem
}

func meaning(response *http.Response, problem *Error, now time.Time) (Class, time.Duration) {
	switch response.Header.Get("X-Error-Code") {
	case "RevisionNotFound":
		return NoRevision, 0
	case "EntryNotFound":
		return NoEntry, 0
	case "RepoNotFound":
		return NoRepository, 0
	case "GatedRepo":
		return Gated, 0
	}
	switch status := response.StatusCode; {
	case strings.Contains(problem.Message, "Access to this resource is disabled"):
		return Disabled, 0
	case status == http.StatusUnauthorized && strings.Contains(problem.Message, "Invalid credentials"):
		return BadToken, 0
	case status == http.StatusUnauthorized:
		return NoRepository, 0
	case status == http.StatusForbidden:
		return Forbidden, 0
	case status == http.StatusTooManyRequests:
		return RateLimited, pause(response.Header, now)
	case transientStatus(status):
		return Transient, retryAfter(response.Header, now)
	case status == http.StatusNotFound:
		return Incompatible, 0
	case status >= 400 && status < 500:
		return Refused, 0
	}
	return Incompatible, 0
}

func transientStatus(status int) bool {
	return status == http.StatusRequestTimeout || status >= 500 && status != http.StatusNotImplemented
}

// retryAfter reads Retry-After, in seconds or as a date; 0 where absent.
func retryAfter(header http.Header, now time.Time) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil && seconds >= 0 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}
