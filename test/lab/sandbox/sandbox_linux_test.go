package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
)

func TestSupported(t *testing.T) {
	tests := map[string]struct {
		goos string
		uid  int
		want failure.Kind
	}{
		"root on Linux": {goos: "linux"},
		"a user":        {goos: "linux", uid: 1000, want: failure.Denied},
		"a Mac":         {goos: "darwin", want: failure.Usage},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := supported(tt.goos, tt.uid)
			if tt.want == 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if got := failure.KindOf(err); got != tt.want {
				t.Errorf("kind %d, want %d", got, tt.want)
			}
			if failure.HintOf(err) == "" {
				t.Error("no hint")
			}
		})
	}
}

func TestParseStat(t *testing.T) {
	const rest = " S 1 2 2 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2 3"
	tests := map[string]struct {
		stat  string
		state byte
		start uint64
		fails bool
	}{
		"plain":                {stat: "12 (lab)" + rest, state: 'S', start: 987654},
		"hostile program name": {stat: "12 (a) Z 1 (b)" + rest, state: 'S', start: 987654},
		"cut off":              {stat: "12 (lab) S 1 2", fails: true},
		"empty":                {stat: "", fails: true},
		"not a number":         {stat: "12 (lab) S 1 2 2 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 x", fails: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			state, start, err := parseStat([]byte(tt.stat))
			if (err != nil) != tt.fails {
				t.Fatalf("error %v", err)
			}
			if state != tt.state || start != tt.start {
				t.Errorf("state %c, start %d", state, start)
			}
		})
	}
}

// A lab is found only as long as it is the very same process.
func TestFind(t *testing.T) {
	self, err := identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	another := self
	another.Start++
	reboot := self
	reboot.Boot = "another"
	tests := map[string]struct {
		id   *Identity
		want bool
	}{
		"never started":            {},
		"running":                  {id: &self, want: true},
		"process id used again":    {id: &another},
		"machine was started anew": {id: &reboot},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := layout.Layout(t.TempDir())
			if tt.id != nil {
				if err := tt.id.save(l); err != nil {
					t.Fatal(err)
				}
			}
			id, running, err := Find(l)
			if err != nil {
				t.Fatal(err)
			}
			if running != tt.want {
				t.Errorf("running %v, want %v", running, tt.want)
			}
			if tt.id != nil {
				if diff := cmp.Diff(*tt.id, id); diff != "" {
					t.Errorf("identity (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// One that does not listen is killed; one that is gone already is fine.
func TestStop(t *testing.T) {
	for name, script := range map[string]string{
		"ends when asked": "echo; exec sleep 60",
		"does not listen": "trap '' TERM; echo; while :; do sleep 1; done",
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("/bin/sh", "-c", script)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := out.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			id, err := identify(cmd.Process.Pid)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := id.Stop(t.Context(), 100*time.Millisecond); err != nil {
					t.Fatal(err)
				}
			}
			if id.Alive() {
				t.Error("still alive")
			}
			_ = cmd.Wait() // reaped only now: a zombie counts as gone
		})
	}
}

func TestMounts(t *testing.T) {
	const table = `21 1 254:0 / / rw - ext4 /dev/root rw
22 21 0:5 / /proc rw - proc proc rw
30 21 254:16 / /data rw - ext4 /dev/vdb rw
31 21 254:0 /srv/a\040b/.lab /run/lab rw - ext4 /dev/root rw
cut off
`
	mounts := parseMounts(table)
	if diff := cmp.Diff(mountPoint{root: "/srv/a b/.lab", point: "/run/lab"}, mounts[3], cmp.AllowUnexported(mountPoint{})); diff != "" {
		t.Errorf("escaped mount (-want +got):\n%s", diff)
	}
	tests := map[string]struct{ path, want string }{
		"on the root file system": {"/srv/.lab", "/srv/.lab"},
		"on a disk of its own":    {"/data/labs/1", "/labs/1"},
		"similar name":            {"/database/.lab", "/database/.lab"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := rootOf(mounts, tt.path); got != tt.want {
				t.Errorf("root %s, want %s", got, tt.want)
			}
		})
	}
}

func TestResidue(t *testing.T) {
	l := layout.Layout(t.TempDir())
	found, err := Residue(l)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) > 0 {
		t.Fatalf("residue of a lab that never was: %v", found)
	}
	if err := os.WriteFile(l.Kubeconfig(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	found, err = Residue(l)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"state " + l.Kubeconfig()}, found); diff != "" {
		t.Errorf("residue (-want +got):\n%s", diff)
	}
}

// Folders stand for control groups: both go by rmdir when empty.
func TestRemoveCgroups(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"memory/k8s.io/mine/init", "cpu/k8s.io/mine", "cpu/k8s.io/other", "k8s.io/mine", "systemd/user"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second time there is nothing to do
		if err := RemoveCgroups(t.Context(), root, []string{"mine"}); err != nil {
			t.Fatal(err)
		}
	}
	var left []string
	for _, pattern := range []string{"*", "*/*", "*/*/*"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			left = append(left, path[len(root)+1:])
		}
	}
	want := []string{"cpu", "memory", "systemd", "cpu/k8s.io", "systemd/user", "cpu/k8s.io/other"}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("groups left (-want +got):\n%s", diff)
	}
}

func TestContainers(t *testing.T) {
	l := layout.Layout(t.TempDir())
	for _, dir := range []string{"io.containerd.grpc.v1.cri/containers/a", "io.containerd.grpc.v1.cri/sandboxes/b", "io.containerd.runtime.v2.task/k8s.io/a"} {
		if err := os.MkdirAll(l.Run("containerd", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ids, err := Containers(l)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, ids); diff != "" {
		t.Errorf("containers (-want +got):\n%s", diff)
	}
}

func TestExitCode(t *testing.T) {
	tests := map[string]struct {
		script string
		want   int
	}{
		"a code":   {"exit 7", 7},
		"a signal": {"kill -TERM $$", 128 + 15},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			code, ok := ExitCode(exec.Command("/bin/sh", "-c", tt.script).Run())
			if !ok || code != tt.want {
				t.Errorf("code %d %v, want %d", code, ok, tt.want)
			}
		})
	}
	if _, ok := ExitCode(exec.Command("/nonexistent").Run()); ok {
		t.Error("a command that was not run has an exit code")
	}
}

// Entering must not change the main thread, whose view /proc/self shows.
func TestOnThread(t *testing.T) {
	for range 100 {
		var tid int
		if err := onThread(func() error { tid = syscall.Gettid(); return nil }); err != nil {
			t.Fatal(err)
		}
		if tid == os.Getpid() {
			t.Fatal("it was called on the main thread")
		}
	}
}
