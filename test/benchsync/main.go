//go:build linux

// Command benchsync holds sync-model against what people use now to bring a
// model from the Hub into a bucket: curl, sha256sum and aws s3 cp or rclone
// copy, by way of a disk; and against what the machine allows: the SHA-256 of
// one core, and what the store takes without checksums. Every client, the Hub
// and the store are processes of their own, so CPU time and memory are theirs
// alone. `make bench-sync` runs it; it needs Linux for /proc.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/dustin/go-humanize"
)

// settings are the flags, of which each command uses a part.
type settings struct {
	bytes       int64
	shards      int
	rounds      int
	memory      []int64
	job         string
	versitygw   string
	aws         string
	scratch     string
	storage     string
	record      string
	url, bucket string
	commit      string
	profile     string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "benchsync:", err)
		stop()
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("give run; hub, sink, put, fetch, null and sha256 are the parts that it starts")
	}
	s, err := parse(args)
	if err != nil {
		return err
	}
	switch args[0] {
	case "run":
		return run(ctx, s)
	case "hub":
		return serveHub(ctx, s)
	case "sink":
		return serveSink(ctx)
	case "put":
		return put(ctx, s)
	case "fetch":
		return fetch(ctx, s)
	case "null":
		return null(ctx, s)
	case "sha256":
		return sha256Rate()
	}
	return fmt.Errorf("%q is not a command", args[0])
}

func parse(args []string) (s settings, err error) {
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	size := flags.String("bytes", "2GiB", "size of the model's weights")
	sizes := flags.String("memory", "1GB,8GB,40GB", "run: sizes at which memory is measured, with a store that keeps nothing; empty for none")
	flags.IntVar(&s.shards, "shards", 4, "number of weight files")
	flags.IntVar(&s.rounds, "rounds", 3, "run: how often each way is measured")
	flags.StringVar(&s.job, "job", "bin/inference-job", "run: the program that is measured")
	flags.StringVar(&s.versitygw, "versitygw", os.Getenv("LAB_VERSITYGW"), "run: the S3 server (make servers builds it)")
	flags.StringVar(&s.aws, "aws", "aws", "run: the AWS command line, a name or a path")
	flags.StringVar(&s.scratch, "scratch", os.TempDir(), "run: folder on a disk, for the ways that need one")
	flags.StringVar(&s.storage, "storage", "/dev/shm", "run: folder in memory for the store")
	flags.StringVar(&s.record, "record", "", "run: file to append the tables to")
	flags.StringVar(&s.url, "url", "", "put, fetch, null: URL of the server")
	flags.StringVar(&s.bucket, "bucket", "bench", "put: bucket")
	flags.StringVar(&s.commit, "commit", "main", "fetch, null: revision")
	flags.StringVar(&s.profile, "profile", "", "null: file for a CPU profile")
	if err := flags.Parse(args[1:]); err != nil {
		return s, err
	}
	if s.bytes, err = parseSize(*size); err != nil {
		return s, err
	}
	for _, field := range strings.FieldsFunc(*sizes, func(r rune) bool { return r == ',' }) {
		bytes, err := parseSize(field)
		if err != nil {
			return s, err
		}
		s.memory = append(s.memory, bytes)
	}
	if s.shards < 1 || s.rounds < 1 {
		return s, fmt.Errorf("read flags: -shards and -rounds begin at 1")
	}
	return s, nil
}

func parseSize(text string) (int64, error) {
	bytes, err := humanize.ParseBytes(text)
	if err != nil || bytes == 0 || bytes > 1<<46 {
		return 0, fmt.Errorf("read size %s: not a number of bytes such as 2GiB", strconv.Quote(text))
	}
	return int64(bytes), nil
}
