// Command engine runs the engine fake with the arguments of a vLLM container:
//
//	engine s3://bucket/models/x --load-format runai_streamer --max-num-seqs 40 --port 8000
//
// A model, if there is one, is read completely before the port opens. What vLLM does not have is a flag or a variable
// of the environment, ENGINE_ and the flag's name, so that the arguments of a real deployment need no change:
//
//	ENGINE_SPEED=10 ENGINE_LOAD_SECONDS=20 ENGINE_ADMIN=true engine /models --max-num-seqs 40
//
// For a test or a demonstration on this machine, without a model:
//
//	engine --port 0 --print-url --speed 10 --admin
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
