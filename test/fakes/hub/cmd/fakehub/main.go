// Command fakehub serves generated models with the Hub's protocol, for the lab.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/kubectl-inference/kubectl-inference/test/fakes/hub"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(os.Stderr, "error: %v\n", err)
		}
		os.Exit(1)
	}
}

// models are the --model flags, owner/name or owner/name=SIZE.
type models []hub.Model

func (m *models) String() string { return "" }

func (m *models) Set(value string) error {
	name, size, sized := strings.Cut(value, "=")
	model := hub.Model{Name: name}
	if sized {
		bytes, err := humanize.ParseBytes(size)
		if err != nil {
			return err
		}
		model.Bytes = int64(bytes)
	}
	*m = append(*m, model)
	return nil
}

// run serves until ctx ends. The addresses and the commit of each model go to
// out, one a line, so that a script can pin them.
func run(ctx context.Context, args []string, out, help io.Writer) error {
	flags := flag.NewFlagSet("fakehub", flag.ContinueOnError)
	flags.SetOutput(help)
	listen := flags.String("listen", ":8080", "address of the Hub")
	cdnListen := flags.String("cdn-listen", ":8081", "address of the CDN")
	cdnURL := flags.String("cdn-url", "", "base URL under which clients reach the CDN (default: the address it listens on)")
	token := flags.String("token", "", "a valid token, whose user accepted every licence")
	var served models
	flags.Var(&served, "model", "model to serve, as owner/name or owner/name=SIZE; may be repeated")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if len(served) == 0 {
		served = models{{Name: "lab/deepseek-r1-distill-qwen-14b-awq", Bytes: 6 << 20}, {Name: "lab/deepseek-r1-distill-qwen-7b-awq", Bytes: 3 << 20}}
	}
	cdn, err := new(net.ListenConfig).Listen(ctx, "tcp", *cdnListen)
	if err != nil {
		return err
	}
	defer cdn.Close()
	front, err := new(net.ListenConfig).Listen(ctx, "tcp", *listen)
	if err != nil {
		return err
	}
	defer front.Close()
	options := hub.Options{Models: served, CDN: *cdnURL}
	if options.CDN == "" {
		options.CDN = "http://" + cdn.Addr().String()
	}
	if *token != "" {
		options.Tokens = []hub.Token{{Value: *token, Accepted: true, Member: true}}
	}
	instance, err := hub.New(options)
	if err != nil {
		return err
	}
	for _, model := range served {
		commit, _ := instance.Commit(model.Name, "main")
		fmt.Fprintf(out, "model %s %s\n", model.Name, commit)
	}
	fmt.Fprintf(out, "listening hub %s cdn %s\n", front.Addr(), cdn.Addr())
	return serve(ctx, map[net.Listener]http.Handler{front: instance.Handler(), cdn: instance.CDNHandler()})
}

func serve(ctx context.Context, handlers map[net.Listener]http.Handler) error {
	failed := make(chan error, len(handlers))
	var servers []*http.Server
	for listener, handler := range handlers {
		server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
		servers = append(servers, server)
		go func() { failed <- server.Serve(listener) }()
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	for _, server := range servers {
		err = errors.Join(err, server.Close())
	}
	return err
}
