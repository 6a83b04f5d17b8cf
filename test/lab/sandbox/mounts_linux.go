package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
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
// its own /proc and /run, the lab's directory under its fixed name, its own view
// of the machine's folders, and the cluster's DNS as resolver.
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
	for _, path := range shielded() {
		if err := shield(path); err != nil {
			return err
		}
	}
	return names()
}

// shielded are the machine's folders that servers write to whatever they are
// told: pod logs and the CNI cache in /var, plug-in folders in /usr and /opt.
// Labs side by side would delete each other's.
func shielded() []string { return []string{"/etc", "/opt", "/usr", "/var"} }

// shield lays a layer in memory over a folder: it reads as before, and what is
// written stays inside.
func shield(path string) error {
	if !isDir(path) {
		return nil
	}
	layers := filepath.Join("/run/shield", path)
	upper, work := filepath.Join(layers, "upper"), filepath.Join(layers, "work")
	for _, dir := range []string{upper, work} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("shield %s: %w", path, err)
		}
	}
	return mount("overlay", path, "overlay", 0, "lowerdir="+path+",upperdir="+upper+",workdir="+work)
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

// names writes the lab's hosts and resolv.conf into its own /etc, in place of
// what may be a link to a file of a name service.
func names() error {
	for path, content := range map[string]string{"/etc/hosts": hosts, "/etc/resolv.conf": resolvConf} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func mount(source, target, fstype string, flags uintptr, data string) error {
	if err := syscall.Mount(source, target, fstype, flags, data); err != nil {
		return fmt.Errorf("mount %s on %s: %w", source, target, err)
	}
	return nil
}
