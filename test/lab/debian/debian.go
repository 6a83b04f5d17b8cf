// Package debian provides the few programs of the lab that are not written for
// it in Go or not buildable from a module: containerd, runc, the CNI plugins,
// iptables and Prometheus. On Debian and its relatives they are downloaded as
// packages and unpacked into the lab's directory, so nothing is installed;
// elsewhere they must be on the PATH.
package debian

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
)

// packages are what the lab uses itself; the libraries they need are looked up.
func packages() []string {
	return []string{"containerd", "runc", "containernetworking-plugins", "iptables", "prometheus"}
}

// programs are the names that must be found in the end.
func programs() []string {
	return []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc", "iptables", "iptables-save", "iptables-restore", "prometheus"}
}

// Tools says where the programs are.
type Tools struct {
	// Path is a PATH: the folders of the programs, the unpacked ones first.
	Path string
	// Libraries is an LD_LIBRARY_PATH and Extensions an XTABLES_LIBDIR; both
	// are empty when the machine's own programs are used.
	Libraries, Extensions string
	// CNI is the folder of the CNI plugins.
	CNI string
}

// Install downloads and unpacks the packages unless that was done before. It
// does nothing where there is no apt-get.
func Install(ctx context.Context, l layout.Layout) error {
	if _, err := exec.LookPath("apt-get"); err == nil && !done(l) {
		if err := unpack(ctx, l); err != nil {
			// The machine's own programs do as well.
			if _, found := Find(l); found == nil {
				return nil
			}
			return err
		}
	}
	_, err := Find(l)
	return err
}

// Find returns where the programs are, or an error that names what is missing.
func Find(l layout.Layout) (Tools, error) {
	tools := Tools{Path: os.Getenv("PATH"), CNI: "/usr/lib/cni"}
	if done(l) {
		root := l.Debian("root")
		tools.Path = strings.Join([]string{l.Debian("bin"), filepath.Join(root, "usr/bin"), filepath.Join(root, "usr/sbin"), tools.Path}, ":")
		tools.CNI = filepath.Join(root, "usr/lib/cni")
		// usr/lib/TRIPLET holds the libraries, and its folder xtables the
		// extensions of iptables; the triplet depends on the architecture.
		extensions, err := filepath.Glob(filepath.Join(root, "usr/lib/*/xtables"))
		if err != nil || len(extensions) != 1 {
			return Tools{}, fmt.Errorf("find iptables' extensions in %s: %d folders, want one", root, len(extensions))
		}
		tools.Extensions = extensions[0]
		triplet := filepath.Dir(tools.Extensions)
		tools.Libraries = triplet + ":" + filepath.Join(root, "lib", filepath.Base(triplet))
	} else if !isFile(filepath.Join(tools.CNI, "bridge")) {
		tools.CNI = "/opt/cni/bin"
	}
	var missing []string
	for _, name := range programs() {
		if !onPath(tools.Path, name) {
			missing = append(missing, name)
		}
	}
	for _, name := range []string{"bridge", "host-local", "portmap", "loopback"} {
		if !isFile(filepath.Join(tools.CNI, name)) {
			missing = append(missing, "CNI plugin "+name)
		}
	}
	if len(missing) > 0 {
		return Tools{}, failure.New(failure.NotFound, "install them (on Debian: packages "+strings.Join(packages(), ", ")+")",
			"find the lab's tools: not found: %s", strings.Join(missing, ", "))
	}
	return tools, nil
}

// Env returns env with the tools in front. The library path is theirs alone:
// programs that are linked statically do not look at it.
func (t Tools) Env(env []string) []string {
	out := []string{"PATH=" + t.Path}
	if t.Libraries != "" {
		out = append(out, "LD_LIBRARY_PATH="+t.Libraries, "XTABLES_LIBDIR="+t.Extensions)
	}
	for _, entry := range env {
		switch name, _, _ := strings.Cut(entry, "="); name {
		case "PATH", "LD_LIBRARY_PATH", "XTABLES_LIBDIR":
		default:
			out = append(out, entry)
		}
	}
	return out
}

// Lookup returns the path of a program; a name with a slash is one.
func (t Tools) Lookup(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, dir := range filepath.SplitList(t.Path) {
		if path := filepath.Join(dir, name); isFile(path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("find %s: %w", name, exec.ErrNotFound)
}

func onPath(path, name string) bool {
	_, err := Tools{Path: path}.Lookup(name)
	return err == nil
}

// isFile reports whether path is a file, following links.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func done(l layout.Layout) bool {
	_, err := os.Stat(l.Debian("done"))
	return !errors.Is(err, os.ErrNotExist)
}
