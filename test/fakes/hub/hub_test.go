package hub_test

import (
	"compress/gzip"
	"crypto/sha1" //nolint:gosec // git's object name
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/test/fakes/hub"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/hub/hubtest"
)

const (
	repo  = "lab/tiny"
	shard = "model-00001-of-00002.safetensors"
)

// ask sends a request and follows no redirect.
func ask(t *testing.T, method, address string, header map[string]string) (*http.Response, []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept-Encoding", "identity")
	for name, value := range header {
		request.Header.Set(name, value)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		body = append(body, "!"...)
	}
	return response, body
}

func start(t *testing.T, options hub.Options) *hubtest.Server {
	t.Helper()
	if options.Models == nil {
		options.Models = []hub.Model{{Name: repo, Bytes: 3 << 20}}
	}
	return hubtest.Start(t, options)
}

type entry struct {
	Type, Path, OID string
	Size            int64
	LFS             *struct {
		OID         string
		Size        int64
		PointerSize int
	}
}

func list(t *testing.T, server *hubtest.Server) []entry {
	t.Helper()
	var entries []entry
	address := server.URL + "/api/models/" + repo + "/tree/main?recursive=true"
	for address != "" {
		response, body := ask(t, http.MethodGet, address, nil)
		var page []entry
		if err := json.Unmarshal(body, &page); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, page...)
		address, _, _ = strings.Cut(strings.TrimPrefix(response.Header.Get("Link"), "<"), ">")
	}
	return entries
}

// Every digest that the listing states is that of the bytes that are served.
func TestDigests(t *testing.T) {
	server := start(t, hub.Options{PageSize: 3})
	directories := 0
	for _, e := range list(t, server) {
		if e.Type == "directory" {
			directories++
			continue
		}
		response, body := ask(t, http.MethodGet, server.URL+"/"+repo+"/resolve/main/"+e.Path, nil)
		if e.LFS == nil {
			sum := sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(body)), body...)) //nolint:gosec // as above
			if hex.EncodeToString(sum[:]) != e.OID || int64(len(body)) != e.Size {
				t.Errorf("%s: not its git blob", e.Path)
			}
			continue
		}
		if response.StatusCode != http.StatusFound || response.Header.Get("X-Linked-Etag") != `"`+e.LFS.OID+`"` {
			t.Fatalf("%s: status %d, header %v", e.Path, response.StatusCode, response.Header)
		}
		_, data := ask(t, http.MethodGet, response.Header.Get("Location"), nil)
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != e.LFS.OID || int64(len(data)) != e.Size {
			t.Errorf("%s: not its lfs.oid", e.Path)
		}
		checkSafetensors(t, e.Path, data)
	}
	if directories != 1 {
		t.Errorf("%d directories are listed", directories)
	}
}

func checkSafetensors(t *testing.T, name string, data []byte) {
	t.Helper()
	length := binary.LittleEndian.Uint64(data)
	var header map[string]struct {
		DType   string `json:"dtype"`
		Shape   []int64
		Offsets [2]int64 `json:"data_offsets"`
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data[8:8+length], &raw); err != nil {
		t.Fatal(err)
	}
	delete(raw, "__metadata__")
	text, _ := json.Marshal(raw)
	if err := json.Unmarshal(text, &header); err != nil {
		t.Fatal(err)
	}
	var total int64
	for tensor, h := range header {
		elements := int64(1)
		for _, n := range h.Shape {
			elements *= n
		}
		if h.DType != "BF16" || 2*elements != h.Offsets[1]-h.Offsets[0] {
			t.Errorf("%s: %s has shape %v and offsets %v", name, tensor, h.Shape, h.Offsets)
		}
		total += 2 * elements
	}
	if total+8+int64(length) != int64(len(data)) {
		t.Errorf("%s: %d bytes of tensors in a file of %d", name, total, len(data))
	}
}

func TestSameModelEachTime(t *testing.T) {
	commit := func(model hub.Model) string {
		instance, err := hub.New(hub.Options{Models: []hub.Model{model}})
		if err != nil {
			t.Fatal(err)
		}
		sha, found := instance.Commit(model.Name, "main")
		if !found || len(sha) != 40 {
			t.Fatalf("commit %q", sha)
		}
		return sha
	}
	base := hub.Model{Name: repo, Bytes: 1 << 20}
	if commit(base) != commit(base) {
		t.Error("two builds have two commits")
	}
	for name, other := range map[string]hub.Model{
		"name": {Name: "lab/x", Bytes: 1 << 20}, "size": {Name: repo, Bytes: 2 << 20}, "seed": {Name: repo, Bytes: 1 << 20, Seed: 1},
		"shards": {Name: repo, Bytes: 1 << 20, Shards: 1}, "file": {Name: repo, Bytes: 1 << 20, Files: map[string][]byte{"x": nil}},
	} {
		if commit(other) == commit(base) {
			t.Errorf("another %s has the same commit", name)
		}
	}
}

func TestRefusals(t *testing.T) {
	const api, file = "/api/models/" + repo + "/revision/main", "/" + repo + "/resolve/main/config.json"
	tokens := []hub.Token{{Value: "known"}, {Value: "accepted", Accepted: true}, {Value: "member", Member: true}}
	tests := map[string]struct {
		model       hub.Model
		path, token string
		status      int
		code        string
	}{
		"public":                    {path: file, status: 200},
		"public with a token":       {path: file, token: "known", status: 200},
		"bad token":                 {path: file, token: "unknown", status: 401},
		"missing, anonymous":        {path: "/api/models/lab/none/revision/main", status: 401, code: "RepoNotFound"},
		"missing, logged in":        {path: "/api/models/lab/none/revision/main", token: "known", status: 404, code: "RepoNotFound"},
		"no revision":               {path: "/api/models/" + repo + "/revision/none", status: 404, code: "RevisionNotFound"},
		"no file":                   {path: "/" + repo + "/resolve/main/none", status: 404, code: "EntryNotFound"},
		"no page":                   {path: "/x", status: 404},
		"gated listing":             {model: hub.Model{Gated: true}, path: api, status: 200},
		"gated file, anonymous":     {model: hub.Model{Gated: true}, path: file, status: 401, code: "GatedRepo"},
		"gated file, not accepted":  {model: hub.Model{Gated: true}, path: file, token: "known", status: 403, code: "GatedRepo"},
		"gated file, accepted":      {model: hub.Model{Gated: true}, path: file, token: "accepted", status: 200},
		"private, anonymous":        {model: hub.Model{Private: true}, path: api, status: 401, code: "RepoNotFound"},
		"private, not a member":     {model: hub.Model{Private: true}, path: api, token: "known", status: 404, code: "RepoNotFound"},
		"private, member":           {model: hub.Model{Private: true}, path: api, token: "member", status: 200},
		"taken down":                {model: hub.Model{Disabled: true}, path: api, status: 403},
		"renamed":                   {model: hub.Model{RenamedFrom: "lab/old"}, path: "/api/models/lab/old/revision/main?x=1", status: 307},
		"pull request, escaped":     {model: hub.Model{Branch: "refs/pr/3"}, path: "/api/models/" + repo + "/revision/refs%2Fpr%2F3", status: 200},
		"page beyond the last":      {path: "/api/models/" + repo + "/tree/main?cursor=99", status: 400},
		"abbreviated commit, wrong": {path: "/api/models/" + repo + "/revision/0000000", status: 404, code: "RevisionNotFound"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.model.Name, test.model.Bytes = repo, 1<<16
			server := start(t, hub.Options{Models: []hub.Model{test.model}, Tokens: tokens})
			header := map[string]string{}
			if test.token != "" {
				header["Authorization"] = "Bearer " + test.token
			}
			response, body := ask(t, http.MethodGet, server.URL+test.path, header)
			if response.StatusCode != test.status || response.Header.Get("X-Error-Code") != test.code {
				t.Errorf("got %d %q: %s", response.StatusCode, response.Header.Get("X-Error-Code"), body)
			}
			if test.status == 307 && response.Header.Get("Location") != "/api/models/"+repo+"/revision/main" {
				t.Errorf("redirects to %q", response.Header.Get("Location"))
			}
		})
	}
}

// location is a fresh CDN URL.
func location(t *testing.T, server *hubtest.Server) string {
	t.Helper()
	response, _ := ask(t, http.MethodGet, server.URL+"/"+repo+"/resolve/main/"+shard, nil)
	return response.Header.Get("Location")
}

func TestCDN(t *testing.T) {
	var mu sync.Mutex
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	server := start(t, hub.Options{PlainLimit: 1 << 20, Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }})
	address := location(t, server)
	tests := map[string]struct {
		address string
		header  map[string]string
		status  int
		bytes   int
	}{
		"range":           {address: address, header: map[string]string{"Range": "bytes=100-199"}, status: 206, bytes: 100},
		"plain, too big":  {address: address, status: 400},
		"with a token":    {address: address, header: map[string]string{"Authorization": "Bearer x"}, status: 400},
		"changed address": {address: strings.Replace(address, "path=model-00001", "path=model-00002", 1), status: 403},
		"past the end":    {address: address, header: map[string]string{"Range": "bytes=99999999-"}, status: 416},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			response, body := ask(t, http.MethodGet, test.address, test.header)
			if response.StatusCode != test.status || test.bytes > 0 && len(body) != test.bytes {
				t.Errorf("got %d and %d bytes", response.StatusCode, len(body))
			}
		})
	}
	if n := server.Stats().CDNTokens; n != 1 {
		t.Errorf("counted %d tokens", n)
	}
	mu.Lock()
	now = now.Add(time.Hour + time.Second)
	mu.Unlock()
	if response, body := ask(t, http.MethodGet, address, map[string]string{"Range": "bytes=0-9"}); response.StatusCode != 403 || !strings.Contains(string(body), "expired") {
		t.Errorf("after an hour: %d %s", response.StatusCode, body)
	}
}

func TestFaults(t *testing.T) {
	ranged := map[string]string{"Range": "bytes=1000-1999"}
	tests := map[string]struct {
		fault hub.Fault
		want  string
	}{
		"none":      {want: "206 1000 right"},
		"cut":       {fault: hub.Fault{Kind: hub.FaultCut, After: 10}, want: "206 11 cut"},
		"corrupt":   {fault: hub.Fault{Kind: hub.FaultCorrupt, After: 1500}, want: "206 1000 wrong"},
		"full":      {fault: hub.Fault{Kind: hub.FaultFull}, want: "200"},
		"expired":   {fault: hub.Fault{Kind: hub.FaultExpired}, want: "403"},
		"status":    {fault: hub.Fault{Kind: hub.FaultStatus, Status: 503, On: hub.OnCDN, RetryAfter: 3}, want: "503"},
		"slow":      {fault: hub.Fault{Kind: hub.FaultSlow, After: 1 << 20}, want: "206 1000 right"},
		"elsewhere": {fault: hub.Fault{Kind: hub.FaultCut, Path: "config.json"}, want: "206 1000 right"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := start(t, hub.Options{})
			address := location(t, server)
			_, right := ask(t, http.MethodGet, address, ranged)
			if test.fault.Kind != "" {
				test.fault.Times = 1
				server.Inject(test.fault)
			}
			response, body := ask(t, http.MethodGet, address, ranged)
			got := fmt.Sprint(response.StatusCode)
			if response.StatusCode == http.StatusPartialContent {
				state := "wrong"
				switch {
				case string(body) == string(right):
					state = "right"
				case strings.HasSuffix(string(body), "!") && len(body) < len(right):
					state = "cut"
				}
				got += fmt.Sprintf(" %d %s", len(body), state)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			// Times is used up.
			if test.fault.Path == "" {
				if _, body := ask(t, http.MethodGet, address, ranged); string(body) != string(right) {
					t.Error("the fault did not end")
				}
			}
		})
	}
}

func TestGzipUnlessIdentity(t *testing.T) {
	server := start(t, hub.Options{})
	address := server.URL + "/" + repo + "/resolve/main/config.json"
	_, plain := ask(t, http.MethodGet, address, nil)
	response, packed := ask(t, http.MethodGet, address, map[string]string{"Accept-Encoding": "gzip", "Range": "bytes=5-9"})
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Encoding") != "gzip" || response.ContentLength >= 0 {
		t.Errorf("got %d, %v", response.StatusCode, response.Header)
	}
	reader, err := gzip.NewReader(strings.NewReader(string(packed)))
	if err != nil {
		t.Fatal(err)
	}
	if unpacked, err := io.ReadAll(reader); err != nil || string(unpacked) != string(plain) {
		t.Errorf("unpacked %q, %v", unpacked, err)
	}
}

func TestRateLimit(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	server := start(t, hub.Options{Limits: hub.Limits{API: 2, Window: time.Minute}, Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }})
	get := func() (int, string) {
		response, _ := ask(t, http.MethodGet, server.URL+"/api/models/"+repo, nil)
		return response.StatusCode, response.Header.Get("RateLimit")
	}
	for i, want := range []string{`200 "api";r=1;t=60`, `200 "api";r=0;t=60`, `429 "api";r=0;t=60`} {
		status, header := get()
		if got := fmt.Sprintf("%d %s", status, header); got != want {
			t.Errorf("request %d: got %s, want %s", i, got, want)
		}
	}
	mu.Lock()
	now = now.Add(time.Minute)
	mu.Unlock()
	if status, _ := get(); status != http.StatusOK {
		t.Errorf("in the next window: status %d", status)
	}
	if response, _ := ask(t, http.MethodGet, server.URL+"/"+repo+"/resolve/main/config.json", nil); response.Header.Get("RateLimit") != "" {
		t.Error("the other bucket is limited too")
	}
}

func TestAdmin(t *testing.T) {
	server := start(t, hub.Options{})
	post := func(body string) int {
		response, err := http.Post(server.URL+"/_fake/faults", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	}
	file := server.URL + "/" + repo + "/resolve/main/config.json"
	if status := post(`{"kind":"status","status":418}`); status != http.StatusNoContent {
		t.Errorf("inject: status %d", status)
	}
	if response, _ := ask(t, http.MethodGet, file, nil); response.StatusCode != 418 {
		t.Errorf("with the fault: %d", response.StatusCode)
	}
	if response, _ := ask(t, http.MethodDelete, server.URL+"/_fake/faults", nil); response.StatusCode != http.StatusNoContent {
		t.Errorf("clear: status %d", response.StatusCode)
	}
	if response, _ := ask(t, http.MethodGet, file, nil); response.StatusCode != 200 {
		t.Errorf("without: %d", response.StatusCode)
	}
	for _, body := range []string{``, `{}`, `{"kind":"cut","nonsense":1}`} {
		if status := post(body); status != http.StatusBadRequest {
			t.Errorf("%q: status %d", body, status)
		}
	}
	var stats hub.Stats
	if _, body := ask(t, http.MethodGet, server.URL+"/_fake/stats", nil); json.Unmarshal(body, &stats) != nil || stats.ResolveRequests != 2 {
		t.Errorf("stats: %s", body)
	}
	commit, _ := server.Commit(repo, "main")
	if _, body := ask(t, http.MethodGet, server.URL+"/_fake/commits", nil); !strings.Contains(string(body), commit) {
		t.Errorf("commits: %s", body)
	}
	for _, origin := range []string{server.URL, server.CDN} {
		if response, body := ask(t, http.MethodGet, origin+"/healthz", nil); response.StatusCode != 200 || string(body) != "ok\n" {
			t.Errorf("healthz: %d %q", response.StatusCode, body)
		}
	}
}
