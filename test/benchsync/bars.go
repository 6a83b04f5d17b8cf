//go:build linux

package main

import (
	"fmt"

	"github.com/dustin/go-humanize"
)

// metadataBlocks is what the kernel may count as written by a program that
// writes no file: a block for each file that it read, for the time of that.
const metadataBlocks = 64 << 10

// The bars. CPU time and memory hold on a busy machine too. A wall time is
// judged only where others used no more than half a core, and both halves of a
// pair met about the same of them.
func (r *results) bars(first string) (lines string, missed int) {
	say := func(text, measured string, met, quiet bool) {
		verdict := "met"
		switch {
		case !met && !quiet:
			verdict = "not judged: the machine was busy"
		case !met:
			verdict = "**missed**"
			missed++
		case !quiet:
			verdict = "met, on a busy machine"
		}
		lines += fmt.Sprintf("| %s | %s | %s |\n", text, measured, verdict)
	}
	if share := r.ratio(ours, first, cpu); share > 0 {
		say("client CPU per GB at most 0.30 of a's", fmt.Sprintf("%.2f", share), share <= 0.30, true)
		faster := r.ratio(first, ours, wall)
		say("at least 2.3 times faster than a", fmt.Sprintf("%.2f", faster), faster >= 2.3, r.quiet(ours, first))
	}
	if core := median(r.goSHA); core > 0 {
		rate := float64(r.bytes) / r.of(limitFetch, wall) / core
		say("read and hash at least 0.75 of one core's SHA-256", fmt.Sprintf("%.2f", rate), rate >= 0.75, r.quiet(limitFetch))
	}
	share := r.ratio(limitPut, ours, wall)
	say("end to end at least 0.65 of what the store takes without checksums", fmt.Sprintf("%.2f", share), share >= 0.65, r.quiet(ours, limitPut))
	var memory float64
	var disk int64
	for _, used := range append(append([]usage{}, r.runs[ours]...), r.runs[limitLoopback]...) {
		memory, disk = max(memory, used.mib), max(disk, used.disk)
	}
	for _, m := range r.memory {
		memory, disk = max(memory, m.mib), max(disk, m.disk)
	}
	say(fmt.Sprintf("peak memory at most %d MiB at any size", budget), fmt.Sprintf("%.0f", memory), memory <= budget, true)
	say("nothing of the model written to disk (a few blocks are access times)", humanize.IBytes(uint64(disk)), disk <= metadataBlocks, true)
	var again int64
	for i := 1; i < len(r.read); i += 2 {
		again += r.read[i]
	}
	say("no byte of a file read where the prefix is complete", fmt.Sprint(again), again == 0, true)
	return lines, missed
}

// quiet says whether the walls of these runs can be judged in most rounds.
func (r *results) quiet(names ...string) bool {
	rounds, good := len(r.runs[names[0]]), 0
	for i := range rounds {
		least, most := 100.0, 0.0
		for _, name := range names {
			if i < len(r.runs[name]) {
				others := r.runs[name][i].others
				least, most = min(least, others), max(most, others)
			}
		}
		if most <= 0.5 && most-least <= 0.2 {
			good++
		}
	}
	return 2*good > rounds
}
