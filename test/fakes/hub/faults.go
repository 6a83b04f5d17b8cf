package hub

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Kind is the way in which the Hub misbehaves.
type Kind string

const (
	// FaultCut closes the connection after After bytes of a body.
	FaultCut Kind = "cut"
	// FaultCorrupt changes the byte at offset After: right length, wrong bytes.
	FaultCorrupt Kind = "corrupt"
	// FaultFull ignores the Range and answers 200 with the whole file.
	FaultFull Kind = "full"
	// FaultExpired has the CDN refuse a URL as expired.
	FaultExpired Kind = "expired"
	// FaultGzip compresses a git file although the client asked for identity.
	FaultGzip Kind = "gzip"
	// FaultSlow sends After bytes per second.
	FaultSlow Kind = "slow"
	// FaultStall sends the header and then nothing.
	FaultStall Kind = "stall"
	// FaultMirror leaves out X-Repo-Commit and X-Linked-*, as mirrors do.
	FaultMirror Kind = "mirror"
	// FaultStatus answers with Status.
	FaultStatus Kind = "status"
)

// The places at which a FaultStatus happens; "" is all of them.
const (
	OnAPI     = "api"
	OnResolve = "resolve"
	OnCDN     = "cdn"
)

// Fault is one switch.
type Fault struct {
	Kind Kind `json:"kind"`
	// Path is a part of the paths to which it applies; "" is every path.
	Path string `json:"path"`
	// Times is how many requests it hits; 0 is all until Clear.
	Times int `json:"times"`
	// After is a number of bytes, see Kind.
	After int64 `json:"after"`
	// Status is the answer of a FaultStatus, On the place.
	Status int    `json:"status"`
	On     string `json:"on"`
	// RetryAfter is sent with it, in seconds, where above 0.
	RetryAfter int `json:"retry_after"`
}

type faults struct {
	mu     sync.Mutex
	active []*Fault
}

// Inject switches a fault on.
func (h *Hub) Inject(fault Fault) {
	h.faults.mu.Lock()
	defer h.faults.mu.Unlock()
	h.faults.active = append(h.faults.active, &fault)
}

// Clear switches all faults off.
func (h *Hub) Clear() {
	h.faults.mu.Lock()
	defer h.faults.mu.Unlock()
	h.faults.active = nil
}

// match finds the first fault that fits and uses it up once.
func (f *faults) match(fits func(*Fault) bool) (Fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, fault := range f.active {
		if !fits(fault) {
			continue
		}
		hit := *fault
		if fault.Times == 1 {
			f.active = append(f.active[:i:i], f.active[i+1:]...)
		} else if fault.Times > 1 {
			fault.Times--
		}
		return hit, true
	}
	return Fault{}, false
}

func (f *faults) find(kind Kind, path string) (Fault, bool) {
	return f.match(func(fault *Fault) bool { return fault.Kind == kind && strings.Contains(path, fault.Path) })
}

func (f *faults) take(kind Kind, path string) bool {
	_, found := f.find(kind, path)
	return found
}

func (f *faults) status(place, path string) (status, retryAfter int, found bool) {
	fault, found := f.match(func(fault *Fault) bool {
		return fault.Kind == FaultStatus && (fault.On == "" || fault.On == place) && strings.Contains(path, fault.Path)
	})
	return fault.Status, fault.RetryAfter, found
}

func failWith(w http.ResponseWriter, status, retryAfter int) {
	if retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	}
	refuse(w, status, "", http.StatusText(status))
}

// corrupted is a content with one wrong byte.
type corrupted struct {
	content
	at int64
}

func (c corrupted) ReadAt(p []byte, offset int64) (int, error) {
	n, err := c.content.ReadAt(p, offset)
	if i := c.at - offset; i >= 0 && i < int64(n) {
		p[i] ^= 0xff
	}
	return n, err
}

// sender writes a body, counts its bytes and carries out cut, slow and stall.
type sender struct {
	http.ResponseWriter
	hub            *Hub
	path           string
	sent           int64
	cutAfter       *int64
	bytesPerSecond int64
	stall          context.Context
}

// ReadFrom copies a body in large pieces, which costs the Hub half of the CPU
// time of io.Copy's small ones. Where a fault is at work they stay small.
func (s *sender) ReadFrom(body io.Reader) (sent int64, err error) {
	if s.cutAfter != nil || s.bytesPerSecond > 0 || s.stall != nil {
		return io.Copy(struct{ io.Writer }{s}, body)
	}
	buffer := pieces.Get().(*[]byte)
	defer pieces.Put(buffer)
	return io.CopyBuffer(struct{ io.Writer }{s}, body, *buffer)
}

var pieces = sync.Pool{New: func() any { buffer := make([]byte, 512<<10); return &buffer }}

func (s *sender) Write(p []byte) (int, error) {
	if s.stall != nil {
		_ = http.NewResponseController(s.ResponseWriter).Flush()
		<-s.stall.Done()
		return 0, io.ErrClosedPipe
	}
	cut := s.cutAfter != nil && s.sent+int64(len(p)) >= *s.cutAfter
	if cut {
		p = p[:*s.cutAfter-s.sent]
	}
	n, err := s.ResponseWriter.Write(p)
	s.sent += int64(n)
	s.hub.stats.add(func(stats *Stats) {
		stats.FileBytes += int64(n)
		stats.BytesByPath[s.path] += int64(n)
	})
	if cut {
		_ = http.NewResponseController(s.ResponseWriter).Flush()
		// The documented way to break off a response.
		panic(http.ErrAbortHandler)
	}
	if s.bytesPerSecond > 0 {
		time.Sleep(time.Duration(n) * time.Second / time.Duration(s.bytesPerSecond))
	}
	return n, err
}
