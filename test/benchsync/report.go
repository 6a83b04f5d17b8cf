//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/kubectl-inference/kubectl-inference/jobs/sync"
)

// The runs that are not ways: what the machine allows.
const (
	limitPut      = "limit: the store takes, no checksums"
	limitFetch    = "limit: read and hash, no sink"
	limitNull     = "ours, parts hashed and dropped unsent"
	limitLoopback = "ours, to a store that drops all"
	limitAgain    = "ours, prefix already complete"
)

// results are the runs by name, in rounds.
type results struct {
	bench          *bench
	names          []string
	runs           map[string][]usage
	loads          map[string][]string
	bytes          int64
	notes          []string
	goSHA, openssl []float64
	// read is what the Hub sent of files in the runs of again, in turns of the
	// first run and the second.
	read   []int64
	memory []sized
}

type sized struct {
	bytes int64
	usage
	load string
}

func (r *results) add(name string, bytes int64, used usage) {
	if r.runs == nil {
		r.runs, r.loads = make(map[string][]usage), make(map[string][]string)
	}
	if r.runs[name] == nil {
		r.names = append(r.names, name)
	}
	r.bytes = bytes
	r.runs[name] = append(r.runs[name], used)
	r.loads[name] = append(r.loads[name], load())
	fmt.Fprintf(os.Stderr, "  %-40s %6.1f s, CPU %6.1f s, %5.0f MiB, others %.1f cores\n", name, used.wall, used.cpu, used.mib, used.others)
}

func (r *results) note(text string) {
	if !slices.Contains(r.notes, text) {
		r.notes = append(r.notes, text)
	}
}

func (r *results) absent(name, tool string) {
	r.note(name + " was not measured: " + tool + " is absent.")
}

func (r *results) failed(name string, err error) {
	fmt.Fprintln(os.Stderr, " ", name, "failed:", err)
	r.note(name + " failed: " + strings.ReplaceAll(tail(err.Error()), "\n", " "))
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	switch {
	case n == 0:
		return 0
	case n%2 == 1:
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// of is the median of a figure over the runs of a name.
func (r *results) of(name string, figure func(usage) float64) float64 {
	var values []float64
	for _, used := range r.runs[name] {
		values = append(values, figure(used))
	}
	return median(values)
}

// ratio is the median of a figure of one name over that of another, each taken
// inside one round; 0 where they were not measured in the same rounds.
func (r *results) ratio(name, over string, figure func(usage) float64) float64 {
	if len(r.runs[name]) != len(r.runs[over]) {
		return 0
	}
	var values []float64
	for i, used := range r.runs[name] {
		values = append(values, figure(used)/figure(r.runs[over][i]))
	}
	return median(values)
}

func wall(u usage) float64 { return u.wall }
func cpu(u usage) float64  { return u.cpu }
func mib(u usage) float64  { return u.mib }

// report is the text for BENCHMARKS.md and the number of bars missed.
func (r *results) report() (string, int) {
	var text strings.Builder
	gb := float64(r.bytes) / 1e9
	fmt.Fprintf(&text, "### sync-model, %s\n\n", time.Now().UTC().Format("2006-01-02 15:04 UTC"))
	fmt.Fprintf(&text, "`make bench-sync`: %d files of together %.2f GB, %d rounds, medians; %s, %d cores, %s; %s; %s; the store's data in memory, downloads on a disk, plain HTTP on loopback.\n\n",
		r.bench.shards, gb, r.bench.rounds, processor(), runtime.NumCPU(), runtime.Version(), version(r.bench.aws, "--version"), version("rclone", "--version"))
	first := ways(r.bench.settings)[0].name
	fmt.Fprintf(&text, "| run | wall, s | GB/s | times faster than a | client CPU, s/GB | of a's | store, hub CPU, s/GB | peak memory, MiB | written to disk / payload | others, cores | load |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, name := range r.names {
		faster, share := "", ""
		if ratio := r.ratio(first, name, wall); ratio > 0 && name != limitAgain {
			faster, share = fmt.Sprintf("%.2f", ratio), fmt.Sprintf("%.2f", r.ratio(name, first, cpu))
		}
		fmt.Fprintf(&text, "| %s | %.1f | %.3f | %s | %.2f | %s | %.2f, %.2f | %.0f | %.2f | %.1f | %s |\n", name, r.of(name, wall), gb/r.of(name, wall), faster,
			r.of(name, cpu)/gb, share, r.of(name, func(u usage) float64 { return u.store })/gb, r.of(name, func(u usage) float64 { return u.hub })/gb,
			r.of(name, mib), r.of(name, func(u usage) float64 { return float64(u.disk) })/float64(r.bytes), r.of(name, func(u usage) float64 { return u.others }), strings.Join(r.loads[name], " "))
	}
	fmt.Fprintf(&text, "\nSHA-256 of one core: Go %.2f GB/s over a part in memory", median(r.goSHA)/1e9)
	if len(r.openssl) > 0 {
		fmt.Fprintf(&text, ", openssl %.2f GB/s over a block in its cache", median(r.openssl)/1e9)
	}
	text.WriteString(".\n")
	if len(r.memory) > 0 {
		text.WriteString("\n| memory: model, to a store that drops all | peak memory, MiB | wall, s | client CPU, s/GB | load |\n|---|---|---|---|---|\n")
		for _, m := range r.memory {
			fmt.Fprintf(&text, "| %s | %.0f | %.1f | %.2f | %s |\n", humanize.Bytes(uint64(m.bytes)), m.mib, m.wall, m.cpu/(float64(m.bytes)/1e9), m.load)
		}
	}
	lines, missed := r.bars(first)
	text.WriteString("\n| bar | measured | |\n|---|---|---|\n" + lines)
	for _, note := range r.notes {
		text.WriteString("\n" + note + "\n")
	}
	return text.String(), missed
}

// processor is the name of the CPU.
func processor() string {
	out, _ := exec.Command("sed", "-n", "s/^model name.*: //p", "/proc/cpuinfo").Output()
	name, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(name)
}

// budget is the memory that a sync may take by default, with what the program
// itself needs.
const budget = sync.DefaultMemory>>20 + 48
