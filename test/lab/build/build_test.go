package build

import (
	"archive/tar"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
)

func newLayout(t *testing.T) layout.Layout {
	t.Helper()
	l := layout.Layout(t.TempDir())
	if err := l.Make(); err != nil {
		t.Fatal(err)
	}
	return l
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

// Everything on the lists is in the repository, under one name each.
func TestLists(t *testing.T) {
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	source, err := Root(wd)
	if err != nil {
		t.Fatal(err)
	}
	programs := append(Servers(), Self())
	tags := map[string]string{}
	for _, image := range Images() {
		programs = append(programs, image.Program)
		for _, tag := range image.Tags {
			if tags[tag] != "" {
				t.Errorf("image %s has two programs: %s and %s", tag, tags[tag], image.Name)
			}
			tags[tag] = image.Name
			// The kubelet would ask a registry for a moving tag.
			if strings.HasSuffix(tag, ":latest") || !strings.Contains(tag, ":") {
				t.Errorf("image %s: the tag moves", tag)
			}
		}
	}
	if tags[PauseTag] == "" {
		t.Errorf("no image %s", PauseTag)
	}
	seen := map[string]bool{}
	for _, p := range programs {
		if seen[p.Name] || slices.Contains(multicall(), p.Name) {
			t.Errorf("two programs are called %s", p.Name)
		}
		seen[p.Name] = true
		if _, err := os.Stat(filepath.Join(source, p.Module, "go.mod")); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		if strings.HasPrefix(p.Package, ".") {
			if _, err := os.Stat(filepath.Join(source, p.Module, p.Package)); err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
		}
	}
}

func TestRoot(t *testing.T) {
	dir := t.TempDir()
	if _, err := Root(dir); failure.KindOf(err) != failure.Usage || failure.HintOf(err) == "" {
		t.Errorf("outside a clone: error %v", err)
	}
	writeFile(t, filepath.Join(dir, "test/lab/go.mod"), "")
	writeFile(t, filepath.Join(dir, "jobs/sync/x.go"), "")
	got, err := Root(filepath.Join(dir, "jobs/sync"))
	if err != nil || got != dir {
		t.Errorf("root %s, error %v", got, err)
	}
}

// A program is built from its module, static, and built again when its source
// changed. It is built for real: the go command is what is tested against.
func TestProgram(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the programs are for Linux and are run here")
	}
	for _, pinned := range []bool{false, true} {
		source, l := t.TempDir(), newLayout(t)
		writeFile(t, filepath.Join(source, "mod/go.mod"), "module example.test/hello\n\ngo 1.26\n")
		writeFile(t, filepath.Join(source, "mod/go.sum"), "")
		p := Program{Name: "hello", Module: "mod", Package: ".", LinkFlags: " -X main.version=v1", Pinned: pinned}
		for _, word := range []string{"one", "two"} {
			writeFile(t, filepath.Join(source, "mod/main.go"), "package main\n\nvar version string\n\nfunc main() { println(version, \""+word+"\") }\n")
			if err := p.build(t.Context(), source, l); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(l.Bin("hello"))
			if err != nil {
				t.Fatal(err)
			}
			if err := p.build(t.Context(), source, l); err != nil {
				t.Fatal(err)
			}
			again, err := os.Stat(l.Bin("hello"))
			if err != nil {
				t.Fatal(err)
			}
			if pinned && !again.ModTime().Equal(info.ModTime()) {
				t.Error("an up-to-date program was built again")
			}
			out, err := run(t.Context(), source, nil, "/bin/sh", "-c", l.Bin("hello")+" 2>&1")
			if err != nil || string(out) != "v1 "+word+"\n" {
				t.Errorf("pinned %v: output %q, error %v", pinned, out, err)
			}
		}
	}
}

func TestProgramThatDoesNotCompile(t *testing.T) {
	source, l := t.TempDir(), newLayout(t)
	writeFile(t, filepath.Join(source, "go.mod"), "module example.test/broken\n\ngo 1.26\n")
	writeFile(t, filepath.Join(source, "main.go"), "package main\n\nfunc main() { undefinedName() }\n")
	err := Program{Name: "broken", Module: ".", Package: "."}.build(t.Context(), source, l)
	if err == nil || !strings.Contains(err.Error(), "build broken") || !strings.Contains(err.Error(), "undefinedName") {
		t.Errorf("error %v", err)
	}
}

func TestPack(t *testing.T) {
	l := newLayout(t)
	writeFile(t, l.Bin("engine"), "first program")
	img := Image{Program{Name: "engine"}, []string{"lab.test/engine:dev"}}
	first, err := img.pack(l)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(l.Image("engine"))
	if err != nil {
		t.Fatal(err)
	}
	same, err := img.pack(l)
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(l.Image("engine"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, same); diff != "" || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("an up-to-date image was packed again (-first +second):\n%s", diff)
	}
	// Cut off, as by a full disk.
	writeFile(t, l.Image("engine"), "half")
	if _, err := img.pack(l); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(l.Image("engine"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := tar.NewReader(f).Next(); err != nil {
		t.Errorf("the archive was not made again: %v", err)
	}
	writeFile(t, l.Bin("engine"), "second program")
	second, err := img.pack(l)
	if err != nil {
		t.Fatal(err)
	}
	if second.ID == first.ID {
		t.Error("another program, the same image")
	}
}

func TestArchives(t *testing.T) {
	l := newLayout(t)
	none, err := Archives(l)
	if err != nil || len(none) > 0 {
		t.Errorf("before the first build: %v, error %v", none, err)
	}
	want := []Built{{Name: "engine", Tags: []string{"lab.test/engine:dev"}, ID: "sha256:1"}}
	if err := writeIndex(l, want); err != nil {
		t.Fatal(err)
	}
	got, err := Archives(l)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
}

func TestLink(t *testing.T) {
	l := newLayout(t)
	writeFile(t, l.Bin("kubectl"), "a file of that name")
	for range 2 {
		if err := link(l); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range multicall() {
		if target, err := os.Readlink(l.Bin(name)); err != nil || target != "kubernetes" {
			t.Errorf("%s leads to %q, error %v", name, target, err)
		}
	}
}

func TestRunSaysWhatFailed(t *testing.T) {
	_, err := run(t.Context(), t.TempDir(), nil, "/bin/sh", "-c", "echo no such module >&2; exit 1")
	if err == nil || !strings.Contains(err.Error(), "no such module") {
		t.Errorf("error %v", err)
	}
}
