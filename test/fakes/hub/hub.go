package hub

import (
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Options configures a Hub. The zero value serves nothing and limits nothing.
type Options struct {
	Models []Model
	// Tokens are the valid tokens. A request with any other is refused, even
	// for a public repository, as the Hub does.
	Tokens []Token
	// CDN is the base URL under which clients reach the CDN handler.
	CDN string
	// NextHost, where set, replaces the origin in the Link of a listing's next
	// page, as mirrors do that pass the official Hub's header through.
	NextHost string
	// PageSize is the number of entries in one page of a listing; 0 is 1000.
	PageSize int
	// URLValidity is how long a CDN URL works; 0 is an hour.
	URLValidity time.Duration
	// PlainLimit is the size above which the CDN refuses a request without a
	// Range; 0 is 50 GB.
	PlainLimit int64
	// Limits are the requests allowed in each window; 0 is no limit.
	Limits Limits
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Token is a user's token.
type Token struct {
	Value string
	// Accepted: this user accepted the licence of gated repositories.
	// Member: this user may read private ones.
	Accepted, Member bool
}

// Hub is a running stand-in. All methods may be called at any time.
type Hub struct {
	options Options
	secret  []byte
	repos   map[string]map[string]*commit
	renamed map[string]string

	faults  faults
	limiter limiter
	stats   stats
}

// New builds the models, which hashes their bytes, and returns the Hub.
func New(options Options) (*Hub, error) {
	if options.PageSize == 0 {
		options.PageSize = 1000
	}
	if options.URLValidity == 0 {
		options.URLValidity = time.Hour
	}
	if options.PlainLimit == 0 {
		options.PlainLimit = 50_000_000_000
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	hub := &Hub{
		options: options,
		secret:  []byte(rand.Text()),
		repos:   make(map[string]map[string]*commit),
		renamed: make(map[string]string),
		limiter: limiter{limits: options.Limits, now: options.Now},
	}
	for _, model := range options.Models {
		if owner, name, found := strings.Cut(model.Name, "/"); !found || owner == "" || name == "" || strings.Contains(name, "/") {
			return nil, fmt.Errorf("serve model: %q is not owner/name", model.Name)
		}
		built := build(model)
		refs := hub.repos[model.Name]
		if refs == nil {
			refs = make(map[string]*commit)
			hub.repos[model.Name] = refs
		}
		branch := model.Branch
		if branch == "" {
			branch = "main"
		}
		refs[branch] = built
		refs[built.sha] = built
		if model.RenamedFrom != "" {
			hub.renamed[model.RenamedFrom] = model.Name
		}
	}
	return hub, nil
}

// Commit returns the commit id that a branch of a repository names.
func (h *Hub) Commit(name, branch string) (string, bool) {
	commit, found := h.repos[name][branch]
	if !found {
		return "", false
	}
	return commit.sha, true
}

// Entry describes one served file, as a test wants to compare it.
type Entry struct {
	Path   string
	Size   int64
	SHA256 string
	LFS    bool
}

// Entries returns the files of a branch in path order.
func (h *Hub) Entries(name, branch string) []Entry {
	commit, found := h.repos[name][branch]
	if !found {
		return nil
	}
	entries := make([]Entry, 0, len(commit.files))
	for _, f := range commit.files {
		entries = append(entries, Entry{Path: f.path, Size: f.content.size, SHA256: f.sha256, LFS: f.lfs})
	}
	return entries
}

// Handler answers as the Hub. It also answers /healthz, and /_fake/faults and
// /_fake/stats for programs that cannot call Inject and Stats.
func (h *Hub) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", healthy)
	h.admin(mux)
	mux.Handle("GET /api/models/{owner}/{name}", h.limited(bucketAPI, h.revision))
	mux.Handle("GET /api/models/{owner}/{name}/revision/{rev}", h.limited(bucketAPI, h.revision))
	mux.Handle("GET /api/models/{owner}/{name}/tree/{rev}", h.limited(bucketAPI, h.tree))
	// A mux of its own: to one mux the two kinds of address look ambiguous.
	files := http.NewServeMux()
	files.Handle("GET /{owner}/{name}/resolve/{rev}/{path...}", h.limited(bucketResolvers, h.resolve))
	mux.Handle("/", files)
	files.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, "", "Sorry, we can't find the page you are looking for.")
	})
	return mux
}

// CDNHandler answers as the CDN to which the Hub redirects for large files.
func (h *Hub) CDNHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", healthy)
	mux.HandleFunc("GET /xet-bridge/{digest}", h.cdn)
	return mux
}

func healthy(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }

// stats counts what was asked and sent.
type stats struct {
	mu sync.Mutex
	Stats
}

// Stats is what the Hub has seen so far.
type Stats struct {
	APIRequests     int `json:"api_requests"`
	ResolveRequests int `json:"resolve_requests"`
	CDNRequests     int `json:"cdn_requests"`
	// FileBytes counts the bytes of file bodies sent by Hub and CDN.
	FileBytes int64 `json:"file_bytes"`
	// CDNTokens counts requests that brought a token to the CDN.
	CDNTokens int `json:"cdn_tokens"`
	// Limited counts answers with status 429.
	Limited int `json:"limited"`
	// ByPath counts the requests for the body of each file, by path.
	ByPath map[string]int `json:"by_path"`
	// BytesByPath counts the bytes of bodies sent of each file, by path.
	BytesByPath map[string]int64 `json:"bytes_by_path"`
}

func (s *stats) add(change func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ByPath == nil {
		s.ByPath, s.BytesByPath = make(map[string]int), make(map[string]int64)
	}
	change(&s.Stats)
}

// Stats returns the counts since the start or the last ResetStats.
func (h *Hub) Stats() Stats {
	h.stats.mu.Lock()
	defer h.stats.mu.Unlock()
	counts := h.stats.Stats
	counts.ByPath, counts.BytesByPath = maps.Clone(h.stats.ByPath), maps.Clone(h.stats.BytesByPath)
	return counts
}

// ResetStats sets all counts to zero.
func (h *Hub) ResetStats() {
	h.stats.mu.Lock()
	defer h.stats.mu.Unlock()
	h.stats.Stats = Stats{}
}
