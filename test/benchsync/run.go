//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/dustin/go-humanize"
)

// run measures all ways in turn, round by round, so that what else goes on in
// the machine meets all of them; then the limits and the memory. It fails where
// a bar is missed that can be judged.
func run(ctx context.Context, s settings) error {
	for path, hint := range map[string]string{s.job: "make build", s.versitygw: "make servers"} {
		if _, err := exec.LookPath(path); err != nil {
			return fmt.Errorf("find %q: %w (%s)", path, err, hint)
		}
	}
	b, clean, err := prepare(ctx, s)
	if err != nil {
		return err
	}
	defer clean()
	r := &results{bench: b}
	for round := range s.rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d, load %s\n", round+1, s.rounds, load())
		if err := b.round(ctx, r); err != nil {
			return err
		}
	}
	b.hub.stop()
	b.hub = nil
	for _, size := range s.memory {
		fmt.Fprintf(os.Stderr, "memory with %s, load %s\n", humanize.Bytes(uint64(size)), load())
		if err := b.memoryOf(ctx, r, size); err != nil {
			return err
		}
	}
	text, missed := r.report()
	fmt.Print(text)
	if s.record != "" {
		if err := appendTo(s.record, text); err != nil {
			return err
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d bars missed", missed)
	}
	return nil
}

// prepare starts the servers, with folders that go in the end.
func prepare(ctx context.Context, s settings) (b *bench, clean func(), err error) {
	b = &bench{settings: s}
	var folders []string
	clean = func() {
		b.hub.stop()
		b.store.stop()
		for _, folder := range folders {
			_ = os.RemoveAll(folder)
		}
	}
	for _, folder := range []*string{&b.scratch, &b.storage} {
		made, err := os.MkdirTemp(*folder, "benchsync-")
		if err != nil {
			clean()
			return nil, nil, err
		}
		folders, *folder = append(folders, made), made
	}
	if b.job, err = filepath.Abs(b.job); err == nil {
		b.hub, b.model, err = startHub(s.bytes, s.shards)
	}
	if err == nil {
		b.store, err = startStore(ctx, s.versitygw, b.storage)
	}
	if err != nil {
		clean()
		return nil, nil, err
	}
	return b, clean, nil
}

// round measures everything once.
func (b *bench) round(ctx context.Context, r *results) error {
	for _, w := range ways(b.settings) {
		if name := w.absent(); name != "" {
			r.absent(w.name, name)
			continue
		}
		used, err := b.try(ctx, w)
		if err != nil && w.name == ours || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if err != nil {
			// The tools' failures are theirs; ours ends the bench.
			r.failed(w.name, err)
			continue
		}
		r.add(w.name, b.model.bytes(), used)
	}
	bucket, remove, err := b.newBucket(ctx)
	if err != nil {
		return err
	}
	defer remove()
	if err := b.limit(ctx, r, limitPut, b.store, "put", "-url", b.store.url, "-bucket", bucket, "-bytes", fmt.Sprint(b.model.bytes()), "-shards", fmt.Sprint(b.shards)); err != nil {
		return err
	}
	for name, command := range map[string]string{limitFetch: "fetch", limitNull: "null"} {
		if err := b.limit(ctx, r, name, nil, command, "-url", b.model.URL, "-commit", b.model.Commit); err != nil {
			return err
		}
	}
	if err := b.again(ctx, r); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, os.Args[0], "sha256").Output()
	if err != nil {
		return err
	}
	r.goSHA = append(r.goSHA, number(strings.TrimSpace(string(out))))
	if rate := opensslRate(ctx); rate > 0 {
		r.openssl = append(r.openssl, rate)
	}
	return nil
}

// limit measures a command of this program, which says its own seconds.
func (b *bench) limit(ctx context.Context, r *results, name string, store *server, args ...string) error {
	used, err := measure(ctx, exec.CommandContext(ctx, os.Args[0], args...), b.hub, store)
	if err != nil {
		return err
	}
	used.wall = number(strings.TrimSpace(used.output))
	r.add(name, b.model.bytes(), used)
	return nil
}

// again runs sync-model on a prefix that is complete; the store is the sink.
func (b *bench) again(ctx context.Context, r *results) error {
	sink, err := startSink()
	if err != nil {
		return err
	}
	defer sink.stop()
	for _, name := range []string{limitLoopback, limitAgain} {
		before, err := b.model.fileBytes()
		if err != nil {
			return err
		}
		cmd, err := b.sync(ctx, b.model, sink.url, "bench")
		if err != nil {
			return err
		}
		used, err := measure(ctx, cmd, b.hub, sink)
		if err != nil {
			return err
		}
		after, err := b.model.fileBytes()
		if err != nil {
			return err
		}
		r.read = append(r.read, after-before)
		r.add(name, b.model.bytes(), used)
	}
	return nil
}

// memoryOf runs sync-model with a model of a size and a store that keeps
// nothing, so that no disk and no other memory limits the size.
func (b *bench) memoryOf(ctx context.Context, r *results, size int64) error {
	hub, from, err := startHub(size, 4)
	if err != nil {
		return err
	}
	defer hub.stop()
	sink, err := startSink()
	if err != nil {
		return err
	}
	defer sink.stop()
	cmd, err := b.sync(ctx, from, sink.url, "bench")
	if err != nil {
		return err
	}
	used, err := measure(ctx, cmd, hub, sink)
	if err != nil {
		return err
	}
	r.memory = append(r.memory, sized{from.bytes(), used, load()})
	return nil
}

func appendTo(path, text string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString("\n" + text)
	return errors.Join(err, file.Close())
}
