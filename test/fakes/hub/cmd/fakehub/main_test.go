package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"--listen", "127.0.0.1:0", "--cdn-listen", "127.0.0.1:0", "--model", "lab/a=1MiB", "--model", "lab/b=100KB"}, writer, io.Discard)
		writer.Close()
	}()
	lines := bufio.NewScanner(reader)
	next := func() []string {
		t.Helper()
		if !lines.Scan() {
			t.Fatal("no line")
		}
		return strings.Fields(lines.Text())
	}
	first, second, listening := next(), next(), next()
	if first[0] != "model" || first[1] != "lab/a" || len(first[2]) != 40 || second[1] != "lab/b" {
		t.Errorf("printed %v, %v", first, second)
	}
	response, err := http.Get("http://" + listening[2] + "/lab/a/resolve/" + first[2] + "/model-00001-of-00002.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if data, err := io.ReadAll(response.Body); err != nil || len(data) < 1<<19 {
		t.Errorf("read %d bytes, %v", len(data), err)
	}
	cancel()
	if err := <-ended; err != nil && !strings.Contains(err.Error(), "closed") {
		t.Errorf("ended with %v", err)
	}
}

func TestRunRefuses(t *testing.T) {
	for name, args := range map[string][]string{
		"flag": {"--nonsense"}, "size": {"--model", "lab/a=big"}, "name": {"--listen", "127.0.0.1:0", "--cdn-listen", "127.0.0.1:0", "--model", "a"}, "address": {"--listen", "nowhere:x"},
	} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
