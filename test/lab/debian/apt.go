package debian

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
)

// unpack downloads the packages and their libraries and unpacks them.
func unpack(ctx context.Context, l layout.Layout) error {
	archives, root := l.Debian("archives"), l.Debian("root")
	for _, dir := range []string{archives, l.Debian("bin"), l.Debian("lists", "partial"), l.Debian("cache", "archives", "partial")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("unpack packages: %w", err)
		}
	}
	// What was cut off the last time may be incomplete.
	if err := os.RemoveAll(root); err != nil {
		return fmt.Errorf("unpack packages: %w", err)
	}
	// The machine's package lists first. Where they are missing or too old,
	// lists of the lab's own, so that the machine's stay as they are.
	err := download(ctx, archives, nil)
	if err != nil && ctx.Err() == nil {
		own := []string{"-o", "Dir::State::lists=" + l.Debian("lists"), "-o", "Dir::Cache=" + l.Debian("cache")}
		if _, updateErr := apt(ctx, archives, own, "apt-get", "update"); updateErr != nil {
			err = errors.Join(err, updateErr)
		} else {
			err = download(ctx, archives, own)
		}
	}
	if err != nil {
		return failure.New(failure.Unreachable, "see that `apt-get update` works, or install the packages "+strings.Join(packages(), ", "), "download packages: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(archives, "*.deb"))
	if err != nil {
		return fmt.Errorf("unpack packages: %w", err)
	}
	for _, file := range files {
		if _, err := apt(ctx, archives, nil, "dpkg-deb", "-x", file, root); err != nil {
			return fmt.Errorf("unpack packages: %w", err)
		}
	}
	if err := links(l); err != nil {
		return err
	}
	if err := os.RemoveAll(archives); err != nil {
		return fmt.Errorf("unpack packages: %w", err)
	}
	if err := os.WriteFile(l.Debian("done"), nil, 0o644); err != nil {
		return fmt.Errorf("unpack packages: %w", err)
	}
	return nil
}

// download fetches the packages and the libraries they need into dir.
func download(ctx context.Context, dir string, options []string) error {
	names := packages()
	for next := names; len(next) > 0; {
		args := append([]string{"depends", "--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances"}, next...)
		out, err := apt(ctx, dir, options, "apt-cache", args...)
		if err != nil {
			return err
		}
		next = slices.DeleteFunc(libraries(out), func(name string) bool { return slices.Contains(names, name) })
		names = append(names, next...)
	}
	// As root: the user that apt changes to may not be allowed to write here.
	options = append([]string{"-o", "APT::Sandbox::User=root"}, options...)
	_, err := apt(ctx, dir, options, "apt-get", append([]string{"download"}, names...)...)
	return err
}

// libraries reads the shared libraries from the output of `apt-cache depends`,
// without those of the C library's own packages, which every machine has, and
// without the scripts of Prometheus' web page.
func libraries(depends []byte) []string {
	var names []string
	for line := range strings.Lines(string(depends)) {
		kind, name, found := strings.Cut(strings.TrimSpace(line), ": ")
		kind = strings.TrimPrefix(kind, "|")
		if !found || kind != "Depends" && kind != "PreDepends" {
			continue
		}
		switch {
		case !strings.HasPrefix(name, "lib"), strings.HasPrefix(name, "libjs-"), name == "libc6", name == "libgcc-s1", slices.Contains(names, name):
		default:
			names = append(names, name)
		}
	}
	return names
}

// links gives iptables the names that Debian makes only when it installs the
// package. The program acts by the name that it is called by.
func links(l layout.Layout) error {
	const multi = "xtables-nft-multi"
	target := filepath.Join("..", "root", "usr", "sbin", multi)
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, suffix := range []string{"", "-save", "-restore"} {
			name := l.Debian("bin", family+suffix)
			if err := os.RemoveAll(name); err != nil {
				return fmt.Errorf("link %s: %w", name, err)
			}
			if err := os.Symlink(target, name); err != nil {
				return fmt.Errorf("link %s: %w", name, err)
			}
		}
	}
	return nil
}

func apt(ctx context.Context, dir string, options []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, append(slices.Clone(options), args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run %s %s: %w: %s", name, args[0], err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}
