// Command inference-job is what runs in the cluster: the work of sync-model,
// bench and rollout, chosen by its argument. Its image is FROM scratch, so the
// roots of public certificate authorities are compiled in.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	_ "golang.org/x/crypto/x509roots/fallback"

	"github.com/kubectl-inference/kubectl-inference/jobs/runner"
)

// version is stamped by the release build.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := runner.Execute(ctx, os.Args[1:], runner.Process{
		Stdout:             os.Stdout,
		Getenv:             os.Getenv,
		TerminationMessage: os.Getenv("TERMINATION_MESSAGE"),
		Version:            version,
	})
	stop()
	os.Exit(code)
}
