package hub_test

import (
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
	if first, second := commit(base), commit(base); first != second {
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
