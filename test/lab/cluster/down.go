package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
	"github.com/kubectl-inference/kubectl-inference/test/lab/process"
	"github.com/kubectl-inference/kubectl-inference/test/lab/sandbox"
)

const (
	// stopGrace is how long the first process may take before it is killed. It
	// has nothing to put in order: all of the lab's state is thrown away.
	stopGrace = 2 * time.Second
	// cleanTimeout bounds tidying up behind a lab.
	cleanTimeout = 10 * time.Second
	cgroupRoot   = "/sys/fs/cgroup"
)

// Down takes the lab down and returns when nothing of it is left but what was
// built and the logs. It reports whether there was one.
func Down(ctx context.Context, o Options) (bool, error) {
	o = o.withDefaults()
	if o.Kubeconfig != "" {
		return downElsewhere(ctx, o)
	}
	if err := o.Layout.Make(); err != nil {
		return false, err
	}
	unlock, err := lock(ctx, o.Layout)
	if err != nil {
		return false, err
	}
	defer unlock()
	id, running, err := sandbox.Find(o.Layout)
	if err != nil {
		return false, err
	}
	if running {
		if err := id.Stop(ctx, stopGrace); err != nil {
			return true, err
		}
	}
	return running, clean(ctx, o.Layout)
}

// abandon takes a lab down whose start failed, also when ctx has ended. The
// caller holds the lock.
func abandon(ctx context.Context, l layout.Layout) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace+cleanTimeout)
	defer cancel()
	id, running, err := sandbox.Find(l)
	if err == nil && running {
		err = id.Stop(ctx, stopGrace)
	}
	return errors.Join(err, clean(ctx, l))
}

// clean removes the state of a lab that no longer runs.
func clean(ctx context.Context, l layout.Layout) error {
	ctx, cancel := context.WithTimeout(ctx, cleanTimeout)
	defer cancel()
	// Before the state: that is where the containers are known from.
	containers, err := sandbox.Containers(l)
	if err != nil {
		return err
	}
	if err := sandbox.RemoveCgroups(ctx, cgroupRoot, containers); err != nil {
		return err
	}
	for _, path := range []string{l.Run(), l.Kubeconfig()} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove the lab's state: %w", err)
		}
	}
	return nil
}

// lock waits until no other command changes the lab, and returns what ends the
// lock. The kernel ends it too, when the process does.
func lock(ctx context.Context, l layout.Layout) (func(), error) {
	file, err := lockFile(l)
	if err != nil {
		return nil, fmt.Errorf("lock lab: %w", err)
	}
	err = process.Poll(ctx, func(context.Context) error {
		return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	})
	if err != nil {
		_ = file.Close()
		return nil, failure.New(failure.KindOf(err), "another `lab up` or `lab down` is at work on "+string(l), "lock lab: %w", err)
	}
	return func() { _ = file.Close() }, nil
}
