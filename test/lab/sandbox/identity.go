package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
	"github.com/kubectl-inference/kubectl-inference/test/lab/process"
)

// Identity says which process a lab is. A process id alone does not: ids are
// used again, and the file may be from before a reboot.
type Identity struct {
	PID int `json:"pid"`
	// Start is when the process started, in clock ticks since boot (field 22 of
	// /proc/PID/stat, proc(5)).
	Start uint64 `json:"start"`
	// Boot is the kernel's random id of this boot.
	Boot string `json:"boot"`
}

// Find returns the running lab of this directory, and false when there is none.
func Find(l layout.Layout) (Identity, bool, error) {
	data, err := os.ReadFile(identityFile(l))
	if errors.Is(err, fs.ErrNotExist) {
		return Identity{}, false, nil
	}
	if err != nil {
		return Identity{}, false, fmt.Errorf("find lab: %w", err)
	}
	var id Identity
	if err := json.Unmarshal(data, &id); err != nil {
		return Identity{}, false, fmt.Errorf("find lab: read %s: %w", identityFile(l), err)
	}
	return id, id.Alive(), nil
}

// Alive reports whether the very process is still there. One that has ended
// and only waits for its parent to notice is not.
func (id Identity) Alive() bool {
	now, err := identify(id.PID)
	return err == nil && now == id
}

// Stop ends the lab and returns when all of it is gone: asked first, killed
// after grace. Stopping a lab that has ended already is fine.
func (id Identity) Stop(ctx context.Context, grace time.Duration) error {
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGTERM, grace}, {syscall.SIGKILL, 10 * time.Second}} {
		if !id.Alive() {
			return nil
		}
		if err := syscall.Kill(id.PID, step.signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop lab: signal process %d: %w", id.PID, err)
		}
		waiting, cancel := context.WithTimeout(ctx, step.wait)
		err := process.Poll(waiting, func(context.Context) error {
			if id.Alive() {
				return errors.New("still running")
			}
			return nil
		})
		cancel()
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("stop lab: process %d does not end", id.PID)
}

// identify reads the identity of a live process.
func identify(pid int) (Identity, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Identity{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	state, start, err := parseStat(stat)
	if err != nil {
		return Identity{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	if state == 'Z' || state == 'X' {
		return Identity{}, fmt.Errorf("identify process %d: it has ended", pid)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Identity{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	return Identity{PID: pid, Start: start, Boot: strings.TrimSpace(string(boot))}, nil
}

// parseStat reads state and start time from /proc/PID/stat. The second field,
// the program's name in parentheses, may itself hold spaces and parentheses.
func parseStat(stat []byte) (state byte, start uint64, err error) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return 0, 0, errors.New("read process status: no program name")
	}
	fields := strings.Fields(string(stat[end+1:]))
	const startField = 22 - 3 // the first field here is number 3
	if len(fields) <= startField {
		return 0, 0, errors.New("read process status: too few fields")
	}
	start, err = strconv.ParseUint(fields[startField], 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("read process status: %w", err)
	}
	return fields[0][0], start, nil
}

// save writes which process the lab is.
func (id Identity) save(l layout.Layout) error {
	data, err := json.Marshal(id)
	if err != nil {
		return fmt.Errorf("note process: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(identityFile(l)), 0o755); err != nil {
		return fmt.Errorf("note process: %w", err)
	}
	if err := os.WriteFile(identityFile(l), data, 0o644); err != nil {
		return fmt.Errorf("note process: %w", err)
	}
	return nil
}

func identityFile(l layout.Layout) string { return l.Run("init.json") }
