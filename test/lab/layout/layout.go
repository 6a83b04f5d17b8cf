// Package layout says where the lab keeps things: one directory holds all of
// it, and inside the lab's mount namespace that directory has one fixed name.
package layout

import (
	"fmt"
	"os"
	"path/filepath"
)

// Inside is where the lab's directory is mounted inside the lab. It is short
// and always the same, for two reasons: the path of a Unix socket may have at
// most 107 bytes (sun_path of unix(7)), and the files that are written for the
// servers then do not depend on the machine.
const Inside = "/run/lab"

// Layout is the lab's directory.
type Layout string

// At returns the layout of the directory dir, made absolute.
func At(dir string) (Layout, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("locate lab directory %s: %w", dir, err)
	}
	return Layout(abs), nil
}

// Bin is the path of a program: the lab's own, the servers', kubectl.
func (l Layout) Bin(name string) string { return filepath.Join(string(l), "bin", name) }

// Images is the folder of the image archives.
func (l Layout) Images() string { return filepath.Join(string(l), "images") }

// Image is the path of one image archive.
func (l Layout) Image(name string) string { return filepath.Join(l.Images(), name+".tar") }

// Objects is the folder of API objects that are rendered at build time.
func (l Layout) Objects(elem ...string) string {
	return filepath.Join(append([]string{string(l), "objects"}, elem...)...)
}

// Debian is the folder of the tools unpacked from Debian's packages.
func (l Layout) Debian(elem ...string) string {
	return filepath.Join(append([]string{string(l), "debian"}, elem...)...)
}

// Stamps is the folder of the notes that say what a built file was built from.
func (l Layout) Stamps(name string) string { return filepath.Join(string(l), "stamps", name) }

// Log is the path of the log of one part. Logs outlive the lab until it is
// started again.
func (l Layout) Log(name string) string { return filepath.Join(string(l), "log", name+".log") }

// Logs is the folder of the logs.
func (l Layout) Logs() string { return filepath.Join(string(l), "log") }

// Run is the state of the running lab; stopping the lab removes all of it.
func (l Layout) Run(elem ...string) string {
	return filepath.Join(append([]string{string(l), "run"}, elem...)...)
}

// Kubeconfig is the file that programs outside the lab use to reach it.
func (l Layout) Kubeconfig() string { return filepath.Join(string(l), "kubeconfig") }

// Elsewhere is the kubeconfig of a cluster of others that is used instead. It
// is apart from the lab's own, which may run at the same time.
func (l Layout) Elsewhere() string { return filepath.Join(string(l), "elsewhere.kubeconfig") }

// Lock is the file that commands which change the lab hold locked.
func (l Layout) Lock() string { return filepath.Join(string(l), "lock") }

// Make creates the folders that outlive a lab.
func (l Layout) Make() error {
	for _, dir := range []string{l.Bin(""), l.Images(), l.Objects(), l.Debian(), l.Stamps(""), l.Logs()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("create lab directory: %w", err)
		}
	}
	return nil
}
