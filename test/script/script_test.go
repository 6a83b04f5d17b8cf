// Package script tells user stories: each file under testdata is what a person
// types, run against the built commands and real servers.
package script

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kubectl-inference/kubectl-inference/plugins/root"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/hub"
	"github.com/kubectl-inference/kubectl-inference/test/s3server"
)

// model is the repository that the Hub of the stories serves.
const model = "lab/tiny-awq"

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"kubectl-inference": plugin})
}

// plugin is the plugin as a command of the scripts.
func plugin() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(root.Execute(ctx, os.Args[1:], term.New(os.Stdin, os.Stdout, os.Stderr, os.Environ()), "v0.0.0-test"))
}

// TestLocal needs no cluster: KUBECONFIG names a file that does not exist.
func TestLocal(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/local",
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE") != "",
		Setup: func(env *testscript.Env) error {
			env.Setenv("KUBECONFIG", env.WorkDir+"/no-kubeconfig")
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("EXAMPLES", examples(t))
			return nil
		},
		Cmds:      servers(t),
		Condition: condition,
	})
}

// condition answers [s3]: whether the real S3 server was built.
func condition(name string) (bool, error) {
	if name != "s3" {
		return false, fmt.Errorf("condition %q is not known", name)
	}
	return os.Getenv(s3server.BinaryVariable) != "", nil
}

// TestCluster runs against a real API server without any controller.
func TestCluster(t *testing.T) {
	server := apiserver.Start(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/cluster",
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE") != "",
		Condition:           condition,
		Setup: func(env *testscript.Env) error {
			env.Setenv("KUBECONFIG", server.Kubeconfig(apiserver.Admin))
			env.Setenv("GUEST", server.Kubeconfig(apiserver.Guest))
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("EXAMPLES", examples(t))
			return nil
		},
		Cmds: servers(t, func(ts *testscript.TestScript, _ bool, args []string) {
			stdin := ""
			if len(args) > 0 && strings.HasSuffix(args[len(args)-1], ".yaml") && args[0] == "apply" {
				stdin = ts.ReadFile(args[len(args)-1])
				args = append(args[:len(args)-1:len(args)-1], "-f", "-")
			}
			ts.Logf("%s", server.Kubectl(t, stdin, args...))
		}),
	})
}

func examples(t *testing.T) string {
	t.Helper()
	directory, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(directory, "/test/script") + "/manifests/examples"
}

type command = func(ts *testscript.TestScript, neg bool, args []string)

// servers are the commands with which a story starts the servers it needs:
// hub, s3, engine; each sets variables for the commands after it.
func servers(t *testing.T, kubectl ...command) map[string]command {
	commands := map[string]command{
		"hub":     startHub,
		"s3":      func(ts *testscript.TestScript, _ bool, _ []string) { startS3(t, ts) },
		"engine":  startEngine,
		"exits":   exits,
		"keypair": func(ts *testscript.TestScript, _ bool, args []string) { keypair(ts, args) },
		"remove":  func(ts *testscript.TestScript, _ bool, args []string) { removeObject(t, ts, args) },
	}
	if len(kubectl) > 0 {
		commands["kubectl"] = kubectl[0]
	}
	return commands
}

// startHub starts the Hub stand-in and sets HUB, MODEL and SHA.
func startHub(ts *testscript.TestScript, _ bool, _ []string) {
	var fake *hub.Hub
	cdn := httptest.NewUnstartedServer(nil)
	address := "http://" + cdn.Listener.Addr().String()
	fake, err := hub.New(hub.Options{Models: []hub.Model{{Name: model, Bytes: 1 << 20}}, CDN: address})
	ts.Check(err)
	cdn.Config.Handler = fake.CDNHandler()
	cdn.Start()
	main := httptest.NewServer(fake.Handler())
	ts.Defer(main.Close)
	ts.Defer(cdn.Close)
	sha, _ := fake.Commit(model, "main")
	ts.Setenv("HUB", main.URL)
	ts.Setenv("MODEL", model)
	ts.Setenv("SHA", sha)
}

// startS3 starts a real S3 server with the bucket "models" and sets S3 and the
// AWS variables.
func startS3(t *testing.T, ts *testscript.TestScript) {
	server := s3server.Start(t)
	server.Bucket(t, "models")
	ts.Setenv("S3", server.URL)
	ts.Setenv("S3DATA", server.Data)
	ts.Setenv("AWS_ACCESS_KEY_ID", s3server.AccessKey)
	ts.Setenv("AWS_SECRET_ACCESS_KEY", s3server.SecretKey)
}

// removeObject deletes an object of the bucket "models" behind everybody's back.
func removeObject(t *testing.T, ts *testscript.TestScript, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: remove KEY")
	}
	server := &s3server.Server{URL: ts.Getenv("S3")}
	_, err := server.Client().DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String("models"), Key: aws.String(args[0])})
	ts.Check(err)
}

// startEngine starts an engine at a hundred times the speed of the seed's GPU
// and sets ENGINE.
func startEngine(ts *testscript.TestScript, _ bool, args []string) {
	config := engine.Config{Names: []string{"tiny"}, Speed: 100, Admin: true}
	if len(args) > 0 {
		config.APIKeys = args
	}
	fake, err := engine.New(config)
	ts.Check(err)
	server := httptest.NewServer(fake)
	ts.Defer(func() {
		server.CloseClientConnections()
		server.Close()
		_ = fake.Close()
	})
	ts.Setenv("ENGINE", server.URL)
}

// exits runs a command that must end with one exit code: exits CODE COMMAND
// [ARG...].
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG...]")
	}
	code := 0
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got := strconv.Itoa(code); got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

// keypair NAME writes a key for signatures to NAME.pem and NAME.pub.pem.
func keypair(ts *testscript.TestScript, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: keypair NAME")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	ts.Check(err)
	for name, block := range map[string]*pem.Block{".pem": {Type: "PRIVATE KEY", Bytes: private}, ".pub.pem": {Type: "PUBLIC KEY", Bytes: public}} {
		ts.Check(os.WriteFile(ts.MkAbs(args[0]+name), pem.EncodeToMemory(block), 0o600))
	}
}
