//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// started is a server of its own process.
type started struct {
	url string
	cmd *exec.Cmd
}

func start(self string) (*started, error) {
	cmd := exec.Command(self, "serve")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	return &started{"http://" + strings.TrimSpace(address), cmd}, err
}

func (s *started) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func (s *started) truth() (truth seen, err error) {
	response, err := http.Get(s.url + "/truth")
	if err != nil {
		return truth, err
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	return truth, json.NewDecoder(response.Body).Decode(&truth)
}

// usage is what a process took.
type usage struct{ cpu, mib float64 }

func execute(name string, args ...string) (string, usage, error) {
	cmd := exec.Command(name, args...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", usage{}, fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(errs.String()))
	}
	used := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	kib := float64(used.Maxrss)
	if runtime.GOOS == "darwin" { // bytes there
		kib /= 1024
	}
	return string(out), usage{cmd.ProcessState.UserTime().Seconds() + cmd.ProcessState.SystemTime().Seconds(), kib / 1024}, nil
}

// run prints two tables: paced streams against the server's truth, and whole
// bodies beside the public tools. A tool that is not there is said to be absent.
func run(counts []int, seconds float64, python, script string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	length := strconv.FormatFloat(seconds, 'g', -1, 64)
	fmt.Printf("Paced streams: first chunk after %v, one each %v, %d chunks; %s s of load. Error is the client's quantile less the server's.\n\n", firstAfter, pace, chunks, length)
	fmt.Println("| streams | client | TTFT error p50 / p99, ms | ITL error p50 / p99, ms | CPU per chunk, us | memory, MiB |\n|---|---|---|---|---|---|")
	for _, n := range counts {
		streams := strconv.Itoa(n)
		for _, client := range []struct {
			name string
			line func(url string) []string
		}{
			{"bench", func(url string) []string {
				return []string{self, "ours", "-url", url, "-streams", streams, "-seconds", length}
			}},
			{"bare net/http", func(url string) []string {
				return []string{self, "bare", "-url", url, "-streams", streams, "-seconds", length}
			}},
			{"Python aiohttp", func(url string) []string { return []string{python, script, url, streams, length} }},
		} {
			row, err := paced(self, client.line)
			if err != nil {
				row = "failed: " + firstLine(err) + " | | |"
				if strings.Contains(err.Error(), "No module named") || errors.Is(err, exec.ErrNotFound) {
					row = "absent | | |"
				}
			}
			fmt.Printf("| %d | %s | %s |\n", n, client.name, row)
		}
	}
	return bodies(self, length)
}

func firstLine(err error) string {
	lines := strings.Split(err.Error(), "\n")
	return lines[len(lines)-1]
}

func paced(self string, line func(string) []string) (string, error) {
	server, err := start(self)
	if err != nil {
		return "", err
	}
	defer server.stop()
	args := line(server.url)
	out, used, err := execute(args[0], args[1:]...)
	if err != nil {
		return "", err
	}
	var got seen
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		return "", err
	}
	truth, err := server.truth()
	if err != nil {
		return "", err
	}
	if truth.Chunks == 0 || got.Chunks == 0 {
		return "", fmt.Errorf("no chunk came")
	}
	// The server's count: a client may see several chunks as one.
	return fmt.Sprintf("%+.1f / %+.1f | %+.1f / %+.1f | %.1f | %.0f", got.TTFT50-truth.TTFT50, got.TTFT99-truth.TTFT99,
		got.ITL50-truth.ITL50, got.ITL99-truth.ITL99, 1e6*used.cpu/float64(truth.Chunks), used.mib), nil
}

// bodies compares plain throughput, where nothing is streamed.
func bodies(self, length string) error {
	server, err := start(self)
	if err != nil {
		return err
	}
	defer server.stop()
	url := server.url + "/burst"
	fmt.Println("\nWhole bodies of the same size, 32 connections: the tools that do not stream.\n\n| tool | requests a second | CPU, ms a request |\n|---|---|---|")
	seconds := strings.SplitN(length, ".", 2)[0]
	for _, tool := range []struct {
		name string
		line []string
		rate *regexp.Regexp
	}{
		{"hey", []string{"hey", "-z", seconds + "s", "-c", "32", url}, regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)},
		{"wrk", []string{"wrk", "-t", "2", "-c", "32", "-d", seconds + "s", url}, regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)},
		{"vegeta", []string{"sh", "-c", "echo GET " + url + " | vegeta attack -rate 0 -max-workers 32 -duration " + seconds + "s | vegeta report"}, regexp.MustCompile(`Requests.*\]\s+[0-9]+, ([0-9.]+)`)},
	} {
		if _, err := exec.LookPath(tool.name); err != nil {
			fmt.Printf("| %s | absent | |\n", tool.name)
			continue
		}
		out, used, err := execute(tool.line[0], tool.line[1:]...)
		match := tool.rate.FindStringSubmatch(out)
		if err != nil || match == nil {
			_, _ = fmt.Fprintln(os.Stderr, out, err)
			fmt.Printf("| %s | failed | |\n", tool.name)
			continue
		}
		rate, _ := strconv.ParseFloat(match[1], 64)
		whole, _ := strconv.ParseFloat(seconds, 64)
		fmt.Printf("| %s | %.0f | %.2f |\n", tool.name, rate, 1000*used.cpu/(rate*whole))
	}
	return nil
}
