package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
	"github.com/kubectl-inference/kubectl-inference/test/lab/network"
)

// Residue lists what a lab that was taken down has left: state, processes,
// mounts, a bridge. An empty list is the proof that it is gone.
//
// Processes are told by their mounts: everything in the lab, down to the
// containers, has some folder of the lab's directory mounted.
func Residue(l layout.Layout) ([]string, error) {
	found := []string{}
	for _, path := range []string{l.Run(), l.Kubeconfig()} {
		if _, err := os.Lstat(path); err == nil {
			found = append(found, "state "+path)
		}
	}
	own, err := mountsOf("self")
	if err != nil {
		return nil, fmt.Errorf("look for residue: %w", err)
	}
	root := rootOf(own, string(l))
	for _, m := range own {
		if under(m.point, string(l)) && m.point != string(l) {
			found = append(found, "mount "+m.point)
		}
	}
	pids, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, fmt.Errorf("look for residue: %w", err)
	}
	for _, dir := range pids {
		pid := filepath.Base(dir)
		mounts, err := mountsOf(pid)
		if err != nil || pid == strconv.Itoa(os.Getpid()) {
			continue // ended meanwhile
		}
		for _, m := range mounts {
			if under(m.root, root) && m.point != string(l) {
				name, err := os.ReadFile(filepath.Join(dir, "comm"))
				if err == nil {
					found = append(found, "process "+pid+" "+strings.TrimSpace(string(name)))
				}
				break
			}
		}
	}
	if _, err := os.Stat("/sys/class/net/" + network.Bridge); !errors.Is(err, fs.ErrNotExist) {
		found = append(found, "bridge "+network.Bridge)
	}
	return found, nil
}

// mountPoint is a line of /proc/PID/mountinfo (proc_pid_mountinfo(5)).
type mountPoint struct {
	// root is the folder of the file system that is mounted, point where.
	root, point string
}

func mountsOf(pid string) ([]mountPoint, error) {
	data, err := os.ReadFile(filepath.Join("/proc", pid, "mountinfo"))
	if err != nil {
		return nil, err
	}
	return parseMounts(string(data)), nil
}

func parseMounts(text string) []mountPoint {
	// Spaces and a few others are written as octal escapes.
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var list []mountPoint
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 4 {
			list = append(list, mountPoint{root: unescape.Replace(fields[3]), point: unescape.Replace(fields[4])})
		}
	}
	return list
}

// rootOf returns what a mount of the folder path has as its root: path as seen
// from the top of its file system.
func rootOf(mounts []mountPoint, path string) string {
	var best mountPoint
	for _, m := range mounts {
		// The last of those with the same place is on top.
		if under(path, m.point) && len(m.point) >= len(best.point) {
			best = m
		}
	}
	rel, err := filepath.Rel(best.point, path)
	if err != nil {
		return path
	}
	return filepath.Join(best.root, rel)
}

// under reports whether path is dir or below it.
func under(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}
