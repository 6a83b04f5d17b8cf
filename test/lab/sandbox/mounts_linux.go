package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
	"github.com/kubectl-inference/kubectl-inference/test/lab/network"
)

// overlayMagic is what statfs(2) calls an overlay file system, which cannot
// itself carry the upper folder of another.
const overlayMagic = 0x794c7630

// hosts gives the node a full name. Programs that ask for their own (Prometheus)
// would otherwise wait for a DNS server that starts after them.
const hosts = "127.0.0.1 localhost\n" + network.Address + " " + NodeName + ".lab " + NodeName + "\n"

// resolvConf makes host processes of the lab (KEDA) resolve names as pods do.
const resolvConf = "nameserver " + network.DNSService + "\n" +
	"search svc.cluster.local cluster.local\noptions ndots:5\n"

// mounts gives the calling process, which must have its own mount namespace,
// its own /proc and /run, the lab's directory under its fixed name, and the
// cluster's DNS as resolver.
func mounts(l layout.Layout) error {
	// Private first: what follows must not show outside.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := mount("proc", "/proc", "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, ""); err != nil {
		return err
	}
	// Held open, since the directory may itself lie under /run.
	dir, err := os.Open(string(l))
	if err != nil {
		return fmt.Errorf("open lab directory: %w", err)
	}
	defer dir.Close()
	if err := mount("tmpfs", "/run", "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=755"); err != nil {
		return err
	}
	for _, path := range []string{layout.Inside, "/run/netns", "/run/lock"} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return fmt.Errorf("create %s: %w", path, err)
		}
	}
	if err := mount(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()), layout.Inside, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
		return err
	}
	if err := layers(layout.Layout(layout.Inside)); err != nil {
		return err
	}
	return names(layout.Layout(layout.Inside))
}

// layers puts containerd's layers in memory where the lab's directory cannot
// hold them, as inside a container.
func layers(l layout.Layout) error {
	path := l.Run("containerd")
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return fmt.Errorf("inspect file system of %s: %w", path, err)
	}
	if int64(st.Type) != overlayMagic {
		return nil
	}
	return mount("tmpfs", path, "tmpfs", 0, "mode=755")
}

// names mounts the lab's hosts and resolv.conf over the machine's.
func names(l layout.Layout) error {
	return errors.Join(over("/etc/hosts", l.Run("hosts"), hosts), over("/etc/resolv.conf", l.Run("resolv.conf"), resolvConf))
}

// over mounts a file with the given content, written to source, over path.
func over(path, source, content string) error {
	if err := os.WriteFile(source, []byte(content), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", source, err)
	}
	target, err := follow(path)
	if err != nil {
		return err
	}
	// Often a link into /run, which is empty here.
	if _, err := os.Stat(target); errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(target, "/run/") {
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return fmt.Errorf("create %s: %w", target, err)
		}
		if err := os.WriteFile(target, nil, 0o644); err != nil {
			return fmt.Errorf("create %s: %w", target, err)
		}
	}
	return mount(source, target, "", syscall.MS_BIND, "")
}

// follow resolves a symbolic link, also one whose target does not exist.
func follow(path string) (string, error) {
	for range 10 {
		target, err := os.Readlink(path)
		if errors.Is(err, syscall.EINVAL) || errors.Is(err, fs.ErrNotExist) {
			return path, nil
		}
		if err != nil {
			return "", fmt.Errorf("follow %s: %w", path, err)
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = strings.Replace(filepath.Clean(target), "/var/run/", "/run/", 1)
	}
	return "", fmt.Errorf("follow %s: too many links", path)
}

func mount(source, target, fstype string, flags uintptr, data string) error {
	if err := syscall.Mount(source, target, fstype, flags, data); err != nil {
		return fmt.Errorf("mount %s on %s: %w", source, target, err)
	}
	return nil
}
