// Command kubectl-inference is the kubectl plugin: `kubectl inference`. Called
// as kubectl_complete-inference it answers kubectl's completion requests.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/klog/v2"

	"github.com/kubectl-inference/kubectl-inference/plugins/root"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// version is stamped by the release build.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	args := os.Args[1:]
	if strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl_complete-") {
		args = append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	// What client-go logs by itself is said by our own errors, in one line.
	klog.SetLogger(logr.Discard())
	streams := term.New(os.Stdin, os.Stdout, os.Stderr, os.Environ())
	code := root.Execute(ctx, args, streams, version)
	stop()
	os.Exit(code)
}
