package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// Enter runs cmd inside the lab and waits for it. Descriptors, environment and
// working folder are the command's own.
//
// A thread may change its mount namespace only when it shares no file system
// context with others, as the threads of a Go program do; so one thread gives
// that up, enters, starts the command, and is thrown away.
func (id Identity) Enter(cmd *exec.Cmd) error {
	return onThread(func() error { return id.enterThread(cmd) })
}

// onThread calls run on a thread that ends afterwards. Never the main thread:
// that cannot end, and it is the one that /proc/self shows.
func onThread(run func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if unix.Gettid() == unix.Getpid() {
			// Held until the other has taken another.
			defer runtime.UnlockOSThread()
			done <- onThread(run)
			return
		}
		done <- run()
	}()
	return <-done
}

func (id Identity) enterThread(cmd *exec.Cmd) error {
	if cmd.Dir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return fmt.Errorf("enter lab: %w", err)
		}
		cmd.Dir = dir
	}
	// Opened before the first is entered: afterwards /proc is another.
	kinds := []struct {
		name string
		flag int
	}{
		{"ipc", unix.CLONE_NEWIPC}, {"uts", unix.CLONE_NEWUTS}, {"net", unix.CLONE_NEWNET},
		{"pid", unix.CLONE_NEWPID}, {"mnt", unix.CLONE_NEWNS},
	}
	var files []*os.File
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	for _, kind := range kinds {
		f, err := os.Open(fmt.Sprintf("/proc/%d/ns/%s", id.PID, kind.name))
		if err != nil {
			return fmt.Errorf("enter lab: %w", err)
		}
		files = append(files, f)
	}
	if !id.Alive() {
		return fmt.Errorf("enter lab: process %d has ended", id.PID)
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("enter lab: leave shared file system context: %w", err)
	}
	for i, kind := range kinds {
		if err := unix.Setns(int(files[i].Fd()), kind.flag); err != nil {
			return fmt.Errorf("enter lab: enter %s namespace: %w", kind.name, err)
		}
	}
	// Looked up only now: the program may exist inside alone.
	if cmd.Err != nil || cmd.Path == "" {
		return cmd.Err
	}
	return cmd.Run()
}
