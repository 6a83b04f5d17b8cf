package s3server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// BinaryVariable names the environment variable that holds the server's path.
const BinaryVariable = "LAB_VERSITYGW"

// The keys of the server's root account.
const (
	AccessKey = "lab-access"
	SecretKey = "lab-secret-key"
)

// Server is a running S3 server.
type Server struct {
	// URL is its base URL, on loopback.
	URL string
	// Data is the directory in which a bucket is a directory and an object a
	// file, for tests that damage an object behind the server's back.
	Data string
}

// Start runs a server until the test ends. Without the binary the test is
// skipped: it is built once, by make test.
func Start(t testing.TB) *Server {
	t.Helper()
	binary := os.Getenv(BinaryVariable)
	if binary == "" {
		t.Skip("needs the S3 server: run make test")
	}
	directory := t.TempDir()
	server := &Server{Data: filepath.Join(directory, "data")}
	for _, path := range []string{server.Data, filepath.Join(directory, "meta")} {
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// The port is free now and could be taken before the server has it, so a
	// server that ends at once is started again on another.
	var failures []error
	for range 5 {
		address, err := freeAddress()
		if err != nil {
			t.Fatal(err)
		}
		server.URL = "http://" + address
		stop, err := run(t.Context(), binary, address, server.Data, filepath.Join(directory, "meta"))
		if err == nil {
			t.Cleanup(stop)
			return server
		}
		failures = append(failures, err)
	}
	t.Fatalf("start the S3 server: %v", errors.Join(failures...))
	return nil
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// run starts the process and returns once it answers.
func run(ctx context.Context, binary, address, data, meta string) (stop func(), err error) {
	var output strings.Builder
	command := exec.Command(binary, "--port", address, "--keep-alive", "--quiet", "--health", "/healthz", "posix", "--sidecar", meta, data)
	command.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+SecretKey)
	command.Stdout, command.Stderr = &output, &output
	command.SysProcAttr = dieWithParent()
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		// The signal that ends the child comes when the thread that started it
		// ends, so that thread stays with this goroutine.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	stop = func() {
		_ = command.Process.Kill()
		<-ended
	}
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for {
		response, err := http.Get("http://" + address + "/healthz")
		if err == nil {
			response.Body.Close()
			return stop, nil
		}
		select {
		case <-ended:
			return nil, fmt.Errorf("%s ended: %s", binary, output.String())
		case <-ctx.Done():
			stop()
			return nil, ctx.Err()
		case <-poll.C:
		}
	}
}

// Client speaks to the server as its root account, for a test's own looks.
func (s *Server) Client() *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: &s.URL, Region: "us-east-1", UsePathStyle: true, Credentials: s.Credentials(),
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	})
}

// Credentials are those of the root account.
func (s *Server) Credentials() aws.CredentialsProvider {
	return credentials.NewStaticCredentialsProvider(AccessKey, SecretKey, "")
}

// Bucket makes an empty bucket.
func (s *Server) Bucket(t testing.TB, name string) string {
	t.Helper()
	if _, err := s.Client().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name}); err != nil {
		t.Fatal(err)
	}
	return name
}

// Keys lists the keys of a bucket.
func (s *Server) Keys(t testing.TB, bucket string) []string {
	t.Helper()
	keys := []string{}
	pages := s3.NewListObjectsV2Paginator(s.Client(), &s3.ListObjectsV2Input{Bucket: &bucket})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range page.Contents {
			keys = append(keys, aws.ToString(object.Key))
		}
	}
	return keys
}

// OpenUploads counts the uploads that were neither completed nor aborted.
func (s *Server) OpenUploads(t testing.TB, bucket string) int {
	t.Helper()
	out, err := s.Client().ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: &bucket})
	if err != nil {
		t.Fatal(err)
	}
	return len(out.Uploads)
}
