//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// server is a process that a client is measured against.
type server struct {
	url  string
	data string
	cmd  *exec.Cmd
}

// begin starts a server that ends with this process, whatever happens.
func begin(cmd *exec.Cmd) (*server, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// The signal comes when the thread that started the child ends, so main's
	// goroutine keeps its thread.
	runtime.LockOSThread()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &server{cmd: cmd}, nil
}

// stop is for a nil server too.
func (s *server) stop() {
	if s != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}

// speaking starts a command of this program that says its first line in JSON.
func speaking(line any, args ...string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	started, err := begin(cmd)
	if err != nil {
		return nil, err
	}
	text, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(text, line)
	}
	if err != nil {
		started.stop()
		return nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	return started, nil
}

func startHub(bytes int64, shards int) (*server, served, error) {
	var line served
	started, err := speaking(&line, "hub", "-bytes", fmt.Sprint(bytes), "-shards", fmt.Sprint(shards))
	return started, line, err
}

func startSink() (*server, error) {
	var line struct{ URL string }
	started, err := speaking(&line, "sink")
	if err == nil {
		started.url = line.URL
	}
	return started, err
}

// startStore runs the S3 server with its data in folder, which should be of
// memory, so that the store's disk is not what is measured.
func startStore(ctx context.Context, binary, folder string) (*server, error) {
	data, meta := filepath.Join(folder, "data"), filepath.Join(folder, "meta")
	for _, path := range []string{data, meta} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, err
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, "--port", address, "--keep-alive", "--quiet", "--health", "/healthz", "posix", "--sidecar", meta, data)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+accessKey, "ROOT_SECRET_KEY="+secretKey)
	started, err := begin(cmd)
	if err != nil {
		return nil, fmt.Errorf("start the S3 server (make servers builds it): %w", err)
	}
	started.url, started.data = "http://"+address, data
	for range 200 {
		if response, err := http.Get(started.url + "/healthz"); err == nil {
			_ = response.Body.Close()
			return started, nil
		}
		select {
		case <-ctx.Done():
			started.stop()
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	started.stop()
	return nil, errors.New("start the S3 server: it does not answer")
}

// The keys of the S3 server's root account.
const (
	accessKey = "bench-access"
	secretKey = "bench-secret-key"
)

// awsEnvironment is how every client gets the keys, and nothing of the user's
// own AWS settings.
func awsEnvironment() []string {
	environment := slices.DeleteFunc(os.Environ(), func(setting string) bool { return strings.HasPrefix(setting, "AWS_") })
	return append(environment, "AWS_ACCESS_KEY_ID="+accessKey, "AWS_SECRET_ACCESS_KEY="+secretKey, "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1",
		"AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null", "AWS_EC2_METADATA_DISABLED=true")
}
