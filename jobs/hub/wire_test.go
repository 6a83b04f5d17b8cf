package hub_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/hub"
)

// The token goes to the exact origin only. net/http would send it to a
// subdomain, and to another port of the same host (hf_transfer#42,
// huggingface_hub#1269).
func TestTokenStaysAtHome(t *testing.T) {
	var seen []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		io.WriteString(w, "data")
	}))
	defer other.Close()
	home := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer hf_secret" || r.Header.Get("Accept-Encoding") != "identity" {
			http.Error(w, "no", http.StatusTeapot)
			return
		}
		http.Redirect(w, r, other.URL+"/signed?X-Amz-Signature=secret", http.StatusFound)
	}))
	defer home.Close()
	client := client(t, hub.Options{Endpoint: home.URL, Token: "hf_secret"})
	data := make([]byte, 4)
	if err := client.Open(repo, strings.Repeat("a", 40), hub.File{Path: "x", Size: 4}).Read(t.Context(), 0, data); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{""}, seen); diff != "" || string(data) != "data" {
		t.Errorf("the other origin saw (-want +got):\n%s", diff)
	}
}

// A Hub that answers for another commit, or with another digest than it listed,
// is not believed.
func TestHubContradictsItself(t *testing.T) {
	commit := strings.Repeat("a", 40)
	for name, header := range map[string][2]string{
		"commit": {"X-Repo-Commit", strings.Repeat("b", 40)},
		"digest": {"X-Linked-Etag", `"` + strings.Repeat("c", 64) + `"`},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set(header[0], header[1])
				io.WriteString(w, "data")
			}))
			defer server.Close()
			client := client(t, hub.Options{Endpoint: server.URL})
			err := client.Open(repo, commit, hub.File{Path: "x", Size: 4, SHA256: strings.Repeat("d", 64)}).Read(t.Context(), 0, make([]byte, 4))
			if classOf(err) != hub.Incompatible {
				t.Errorf("got %v", err)
			}
		})
	}
}

// An endpoint may have a path, and the names in it are escaped by segment.
func TestAddresses(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.EscapedPath())
		switch {
		case strings.Contains(r.URL.Path, "/tree/") && r.URL.Query().Get("cursor") == "":
			w.Header().Set("Link", `<https://hub.example/api/models/o/n/tree/x?recursive=true&cursor=2>; rel="next"`)
			io.WriteString(w, "[]")
		case strings.Contains(r.URL.Path, "/tree/"):
			io.WriteString(w, `[{"type":"file","path":"a","size":1,"oid":"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"}]`)
		case strings.Contains(r.URL.Path, "/revision/"):
			fmt.Fprintf(w, `{"sha":%q}`, strings.Repeat("a", 40))
		default:
			io.WriteString(w, "x")
		}
	}))
	defer server.Close()
	client := client(t, hub.Options{Endpoint: server.URL + "/mirror/"})
	if _, err := client.Resolve(t.Context(), "o/n", "refs/pr/3"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.List(t.Context(), "o/n", "x"); err != nil {
		t.Fatal(err)
	}
	if err := client.Open("o/n", "x", hub.File{Path: "a b/c+%?#.txt"}).Read(t.Context(), 0, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"/mirror/api/models/o/n/revision/refs%2Fpr%2F3", "/mirror/api/models/o/n/tree/x", "/mirror/api/models/o/n/tree/x",
		"/mirror/o/n/resolve/x/a%20b/c+%25%3F%23.txt",
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
}

func TestUnusableAnswers(t *testing.T) {
	tests := map[string]string{
		"a web page":        `<html>`,
		"no commit":         `{"sha":"main"}`,
		"no object":         `[]`,
		"two sizes":         `[{"type":"file","path":"a","size":7,"oid":"x","lfs":{"oid":"y","size":9,"pointerSize":130}}]`,
		"a circle of pages": ``,
	}
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if body == "" {
					w.Header().Set("Link", "<"+r.URL.RequestURI()+`>; rel="next"`)
					io.WriteString(w, "[]")
					return
				}
				io.WriteString(w, body)
			}))
			defer server.Close()
			client := client(t, hub.Options{Endpoint: server.URL})
			var err error
			if strings.HasPrefix(body, "[{") || body == "" {
				_, err = client.List(t.Context(), "o/n", "x")
			} else {
				_, err = client.Resolve(t.Context(), "o/n", "main")
			}
			if classOf(err) != hub.Incompatible {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	for _, endpoint := range []string{"hub", "ftp://hub", "http://", "://"} {
		if _, err := hub.New(hub.Options{Endpoint: endpoint}); err == nil {
			t.Errorf("%q was accepted", endpoint)
		}
	}
}

func TestNobodyThere(t *testing.T) {
	clock := newClock()
	client := client(t, hub.Options{Endpoint: "http://127.0.0.1:1", Now: clock.Now, Wait: clock.Wait, Attempts: 2})
	_, err := client.Resolve(t.Context(), repo, "main")
	var problem *hub.Error
	if !errors.As(err, &problem) || !problem.NoConnection || problem.Attempts != 2 {
		t.Errorf("got %v", err)
	}
}
