package verify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

// object compares one object of the right size with its line. Where two kinds of
// evidence speak, one problem is enough.
func (r *run) object(ctx context.Context, file *record.ManifestFile) error {
	object, err := r.bucket.Head(ctx, r.key(file.Path))
	switch {
	case store.CauseOf(err) == store.NoObject:
		r.problem(file.Path, record.ProblemMissing, fmt.Sprintf("%d bytes", file.Size), "nothing")
		r.files.Add(1)
		return nil
	case err != nil:
		return err
	}
	proved, problem := judge(*file, object)
	if r.plan.Mode == record.VerifyFull {
		sum, err := r.hash(ctx, *file)
		if err != nil {
			return err
		}
		switch proved = sum == file.SHA256; {
		case !proved:
			problem = &record.ModelProblem{Kind: record.ProblemContent, Expected: file.SHA256, Found: sum}
		case object.Metadata["sha256"] == "" || object.Metadata["sha256"] == file.SHA256:
			// Written anew with the same bytes, perhaps from a backup: what was
			// read outweighs what the store remembers.
			problem = nil
		}
	}
	r.files.Add(1)
	if problem != nil {
		r.problem(file.Path, problem.Kind, problem.Expected, problem.Found)
		return nil
	}
	if proved {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.result.Proved.Add(file.Size)
	}
	return nil
}

// judge compares what the store says about an object with its line. proved says
// that a checksum which the store computed covers the whole content.
func judge(file record.ManifestFile, object store.Object) (proved bool, problem *record.ModelProblem) {
	differ := func(kind, expected, found string) (bool, *record.ModelProblem) {
		return false, &record.ModelProblem{Kind: kind, Expected: expected, Found: found}
	}
	recorded := ""
	if file.S3 != nil {
		recorded = file.S3.ChecksumSHA256
	}
	stated, computed := object.Metadata["sha256"], object.SHA256()
	switch {
	case object.Size != file.Size:
		return differ(record.ProblemSize, fmt.Sprint(file.Size), fmt.Sprint(object.Size))
	case computed != "" && computed != file.SHA256:
		return differ(record.ProblemContent, file.SHA256, computed)
	case stated != "" && stated != file.SHA256:
		return differ(record.ProblemMetadata, file.SHA256, stated)
	case recorded != "" && object.ChecksumSHA256 != recorded && computed == "":
		return differ(record.ProblemChecksum, recorded, cmp.Or(object.ChecksumSHA256, "none"))
	}
	// A sync states a digest in every object's metadata; without one, another
	// program wrote the object anew, and where the store cannot tell what it
	// wrote, that is a difference.
	if stated == "" && object.Metadata["git-sha1"] == "" && computed == "" && recorded == "" {
		return differ(record.ProblemMetadata, file.SHA256, "none")
	}
	return computed != "" || recorded != "", nil
}

// hash reads an object and returns its SHA-256.
func (r *run) hash(ctx context.Context, file record.ManifestFile) (string, error) {
	sum := sha256.New()
	if err := r.bucket.Copy(ctx, r.key(file.Path), file.Size, io.MultiWriter(sum, counter{&r.read})); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
