//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// usage is what one run of a client took, and what went on beside it.
type usage struct {
	wall, cpu float64
	// mib is the peak of the resident memory of all its processes together.
	mib float64
	// disk is the bytes that it wrote to files of a disk.
	disk int64
	// hub and store are the CPU seconds of the servers.
	hub, store float64
	// others is the number of cores that the rest of the machine used.
	others float64
	output string
}

// ticks is the unit of /proc's CPU times: USER_HZ, 100 on every Linux port.
const ticks = 100

// measure runs a client to its end. What it starts must stay in its process
// group, and it must wait for its children: the kernel adds theirs to its own.
func measure(ctx context.Context, cmd *exec.Cmd, hub, store *server) (used usage, err error) {
	var output, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	busy, hubBefore, storeBefore := machine(), hub.cpu(), store.cpu()
	self := ownCPU()
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return used, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	sample := time.NewTicker(250 * time.Millisecond)
	defer sample.Stop()
wait:
	for {
		select {
		case err = <-ended:
			break wait
		case <-sample.C:
			used.mib = max(used.mib, group(cmd.Process.Pid))
		case <-ctx.Done():
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}
	used.wall = time.Since(began).Seconds()
	used.output = output.String()
	if err != nil {
		return used, fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, tail(errs.String()+output.String()))
	}
	rusage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	used.cpu = cmd.ProcessState.UserTime().Seconds() + cmd.ProcessState.SystemTime().Seconds()
	used.mib = max(used.mib, float64(rusage.Maxrss)/1024)
	used.disk = rusage.Oublock * 512
	used.hub, used.store = hub.cpu()-hubBefore, store.cpu()-storeBefore
	used.others = max(0, (machine()-busy-used.cpu-used.hub-used.store-(ownCPU()-self))/used.wall)
	return used, nil
}

func tail(text string) string {
	text = strings.TrimSpace(text)
	return text[max(0, len(text)-600):]
}

// cpu is the CPU time of a server so far, 0 for none.
func (s *server) cpu() float64 {
	if s == nil {
		return 0
	}
	fields := stat(s.cmd.Process.Pid)
	if len(fields) < 15 {
		return 0
	}
	return (number(fields[11]) + number(fields[12])) / ticks
}

// stat is /proc/PID/stat from the third field on; the second may hold spaces.
func stat(pid int) []string {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	return strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
}

// group is the resident memory in MiB of a process group.
func group(id int) (mib float64) {
	entries, _ := filepath.Glob("/proc/[0-9]*")
	for _, entry := range entries {
		pid, _ := strconv.Atoi(filepath.Base(entry))
		if fields := stat(pid); len(fields) > 21 && fields[2] == strconv.Itoa(id) {
			mib += number(fields[21]) * float64(os.Getpagesize()) / (1 << 20)
		}
	}
	return mib
}

// machine is the CPU time that all processes used so far: user, nice, system,
// irq and softirq.
func machine() float64 {
	data, err := os.ReadFile("/proc/stat")
	fields := strings.Fields(string(data))
	if err != nil || len(fields) < 8 {
		return 0
	}
	return (number(fields[1]) + number(fields[2]) + number(fields[3]) + number(fields[6]) + number(fields[7])) / ticks
}

func ownCPU() float64 {
	var rusage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &rusage) // it cannot fail for oneself
	return seconds(rusage.Utime) + seconds(rusage.Stime)
}

func seconds(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }

func number(text string) float64 {
	value, _ := strconv.ParseFloat(text, 64)
	return value
}

func load() string {
	data, _ := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(data))
	if len(fields) == 0 {
		return "unknown"
	}
	return fields[0]
}
