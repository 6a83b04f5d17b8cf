// Command kserve-standin reconciles InferenceServices and LLMInferenceServices
// in the lab. It is not KServe: see the package kserve for what it imitates.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve/controller"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run reconciles until the context ends.
func run(ctx context.Context, args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("kserve-standin", flag.ContinueOnError)
	flags.SetOutput(stderr)
	kubeconfig := flags.String("kubeconfig", "", "path of a kubeconfig; in a pod, the pod's own account where it is empty")
	namespace := flags.String("namespace", "kserve", "namespace of the presets")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	reconciler, err := controller.New(config, controller.Options{
		Namespace: *namespace,
		Log:       slog.New(slog.NewTextHandler(stderr, nil)),
		Now:       time.Now,
	})
	if err != nil {
		return err
	}
	return reconciler.Run(ctx)
}
