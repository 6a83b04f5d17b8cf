//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// bench is one run of the program: its servers and where things are.
type bench struct {
	settings
	hub     *server
	model   served
	store   *server
	buckets int
}

// way is one way to bring the model into a bucket.
type way struct {
	name string
	// needs are the programs without which it is absent.
	needs   []string
	command func(ctx context.Context, b *bench, bucket string) (*exec.Cmd, error)
}

const ours = "ours"

func ways(s settings) []way {
	return []way{
		{"a: curl x4, sha256sum, aws s3 cp", []string{"curl", "sha256sum", s.aws}, func(ctx context.Context, b *bench, bucket string) (*exec.Cmd, error) {
			return b.byDisk(ctx, `"$AWS" s3 cp --only-show-errors --recursive --endpoint-url "$STORE" . "s3://$BUCKET/model"`, bucket), nil
		}},
		{"b: curl x4, sha256sum, rclone copy", []string{"curl", "sha256sum", "rclone"}, func(ctx context.Context, b *bench, bucket string) (*exec.Cmd, error) {
			return b.byDisk(ctx, `rclone copy --config "" --s3-provider Other --s3-env-auth --s3-endpoint "$STORE" --s3-no-check-bucket --transfers 4 --s3-chunk-size 64M --s3-upload-concurrency 4 . ":s3:$BUCKET/model"`, bucket), nil
		}},
		{ours, []string{s.job}, func(ctx context.Context, b *bench, bucket string) (*exec.Cmd, error) {
			return b.sync(ctx, b.model, b.store.url, bucket)
		}},
	}
}

// byDisk is the way by a disk: download all files at once, compare their
// digests with the Hub's, then upload.
func (b *bench) byDisk(ctx context.Context, upload, bucket string) *exec.Cmd {
	var script strings.Builder
	script.WriteString("set -eu\npids=\n")
	for _, file := range b.model.weights() {
		fmt.Fprintf(&script, "curl -sSfL -o %s \"$HUB/%s/resolve/%s/%s\" & pids=\"$pids $!\"\n", file.Path, model, b.model.Commit, file.Path)
	}
	script.WriteString("for pid in $pids; do wait $pid; done\nsha256sum --quiet -c - <<END\n")
	for _, file := range b.model.weights() {
		fmt.Fprintf(&script, "%s  %s\n", file.SHA256, file.Path)
	}
	script.WriteString("END\n" + upload + "\n")
	cmd := exec.CommandContext(ctx, "sh", "-c", script.String())
	cmd.Dir = filepath.Join(b.scratch, "download")
	cmd.Env = append(awsEnvironment(), "HUB="+b.model.URL, "STORE="+b.store.url, "BUCKET="+bucket, "AWS="+b.aws)
	return cmd
}

// sync is the Job's program as a pod runs it.
func (b *bench) sync(ctx context.Context, from served, store, bucket string) (*exec.Cmd, error) {
	plan, err := json.Marshal(syncPlan(from, store, bucket))
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, b.job, "sync")
	cmd.Env = append(awsEnvironment(), "INFERENCE_PLAN="+string(plan))
	return cmd, nil
}

func syncPlan(from served, store, bucket string) record.SyncPlan {
	return record.SyncPlan{
		TypeMeta: record.Meta(record.KindSyncPlan), Repo: model, Revision: from.Commit, HubEndpoint: from.URL,
		Destination: "s3://" + bucket, S3Endpoint: store, Include: []string{"*.safetensors"}, AllowIncompleteIndex: true,
	}
}

// newBucket is a bucket of its own for a run, and what empties it again.
func (b *bench) newBucket(ctx context.Context) (name string, remove func(), err error) {
	b.buckets++
	name = fmt.Sprintf("bench-%d", b.buckets)
	if err := makeBucket(ctx, b.store.url, name); err != nil {
		return "", nil, err
	}
	return name, func() { _ = os.RemoveAll(filepath.Join(b.store.data, name)) }, nil
}

// arrived checks that every weight file is in the bucket in full.
func (b *bench) arrived(bucket string) error {
	sizes := make(map[string]int64)
	err := filepath.WalkDir(filepath.Join(b.store.data, bucket), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			sizes[filepath.Base(path)] = info.Size()
		}
		return err
	})
	for _, file := range b.model.weights() {
		if sizes[file.Path] != file.Size {
			err = errors.Join(err, fmt.Errorf("%s: %d of %d bytes in the bucket", file.Path, sizes[file.Path], file.Size))
		}
	}
	return err
}

// absent names the first program of a way that is not there.
func (w way) absent() string {
	for _, name := range w.needs {
		if _, err := exec.LookPath(name); err != nil {
			return name
		}
	}
	return ""
}

// try measures one way once.
func (b *bench) try(ctx context.Context, w way) (usage, error) {
	bucket, remove, err := b.newBucket(ctx)
	if err != nil {
		return usage{}, err
	}
	defer remove()
	download := filepath.Join(b.scratch, "download")
	if err := os.MkdirAll(download, 0o700); err != nil {
		return usage{}, err
	}
	defer os.RemoveAll(download) //nolint:errcheck // the scratch folder goes in the end
	cmd, err := w.command(ctx, b, bucket)
	if err != nil {
		return usage{}, err
	}
	used, err := measure(ctx, cmd, b.hub, b.store)
	if err == nil {
		err = b.arrived(bucket)
	}
	return used, err
}

// version is the first line of what a tool says about itself.
func version(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	line, _, _ := bytes.Cut(out, []byte("\n"))
	if err != nil || len(line) == 0 {
		return name + " absent"
	}
	// What follows, of aws, describes the machine.
	words := bytes.Fields(line)
	return string(bytes.Join(words[:min(2, len(words))], []byte(" ")))
}
