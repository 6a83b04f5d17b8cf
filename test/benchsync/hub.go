//go:build linux

package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path"
	"time"

	"github.com/kubectl-inference/kubectl-inference/test/fakes/hub"
)

const model = "bench/model"

// served is what a Hub process says of itself, as one line of JSON.
type served struct {
	URL    string      `json:"url"`
	Commit string      `json:"commit"`
	Files  []hub.Entry `json:"files"`
}

// serveHub serves a generated model with the stand-in for the Hub.
func serveHub(ctx context.Context, s settings) error {
	cdn, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	instance, err := hub.New(hub.Options{
		Models: []hub.Model{{Name: model, Bytes: s.bytes, Shards: s.shards}}, CDN: "http://" + cdn.Addr().String(), PlainLimit: 1 << 50,
	})
	if err != nil {
		return err
	}
	commit, _ := instance.Commit(model, "main")
	if err := json.NewEncoder(os.Stdout).Encode(served{"http://" + front.Addr().String(), commit, instance.Entries(model, "main")}); err != nil {
		return err
	}
	failed := make(chan error, 2)
	go func() { failed <- http.Serve(cdn, instance.CDNHandler()) }() //nolint:gosec // on loopback, for one run
	go func() { failed <- http.Serve(front, instance.Handler()) }()  //nolint:gosec // as above
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// weights are the large files, by their bare names.
func (s served) weights() []hub.Entry {
	var files []hub.Entry
	for _, file := range s.Files {
		if path.Ext(file.Path) == ".safetensors" {
			files = append(files, file)
		}
	}
	return files
}

func (s served) bytes() (total int64) {
	for _, file := range s.weights() {
		total += file.Size
	}
	return total
}

// fileBytes is what the Hub has sent of files so far.
func (s served) fileBytes() (int64, error) {
	client := http.Client{Timeout: 10 * time.Second}
	response, err := client.Get(s.URL + "/_fake/stats")
	if err != nil {
		return 0, err
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	var stats hub.Stats
	err = json.NewDecoder(response.Body).Decode(&stats)
	return stats.FileBytes, err
}
