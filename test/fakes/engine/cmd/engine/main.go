// Command engine runs the engine fake with the arguments of a vLLM container.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	p := process{stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, now: time.Now}
	code := p.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
