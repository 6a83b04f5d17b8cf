//go:build unix

// Command benchclient holds bench's client against others: a bare net/http
// reader of the same streams (the floor), a Python client written for the
// purpose with aiohttp, and, for whole bodies, hey, wrk and vegeta. Every client
// is a process of its own, so its CPU time and memory are its alone; the server
// is another, and says what it really did. `make bench-client` runs it.
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("give serve, ours, bare or run"))
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	url := flags.String("url", "", "URL of the server")
	streams := flags.Int("streams", 50, "streams at once")
	seconds := flags.Float64("seconds", 10, "time after which no stream is begun")
	list := flags.String("list", "50,200,500,1000,2000", "run: numbers of streams")
	python := flags.String("python", "python3", "run: a Python that has aiohttp")
	script := flags.String("script", "test/benchclient/client.py", "run: the Python client")
	_ = flags.Parse(os.Args[2:]) // it ends the process on an error
	length := time.Duration(*seconds * float64(time.Second))
	switch os.Args[1] {
	case "serve":
		fail(serve())
	case "ours":
		fail(report(ours(*url, *streams, length)))
	case "bare":
		fail(report(bare(*url, *streams, length)))
	case "run":
		var counts []int
		for _, field := range strings.Split(*list, ",") {
			n, err := strconv.Atoi(field)
			fail(err)
			counts = append(counts, n)
		}
		fail(run(counts, *seconds, *python, *script))
	default:
		fail(fmt.Errorf("%q is not a command", os.Args[1]))
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchclient:", err)
		os.Exit(1)
	}
}
