package store

import (
	"context"
	"crypto/sha256"
	"encoding/base64"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Part is a part that the store holds for an upload.
type Part struct {
	Number int
	Size   int64
	// SHA256 is the digest that the store checked on arrival, nil where it
	// states none.
	SHA256 []byte

	etag string
}

// ResumeUpload takes up an upload of an earlier run, with the parts that the
// store holds of it. None of them is part of the object unless Adopt says so.
// The cause is NoObject where the upload was completed or aborted.
func (b *Bucket) ResumeUpload(ctx context.Context, key, id string) (*Upload, map[int]Part, error) {
	found := make(map[int]Part)
	pages := s3.NewListPartsPaginator(b.client, &s3.ListPartsInput{Bucket: &b.config.Bucket, Key: &key, UploadId: &id})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, nil, b.fail("list the parts of", key, "s3:ListMultipartUploadParts", err)
		}
		for _, item := range page.Parts {
			part := Part{Number: int(aws.ToInt32(item.PartNumber)), Size: aws.ToInt64(item.Size), etag: aws.ToString(item.ETag)}
			part.SHA256 = rawSHA256(item.ChecksumSHA256)
			found[part.Number] = part
		}
	}
	return &Upload{bucket: b, key: key, id: id, sums: make(map[int32][]byte)}, found, nil
}

// ID is the store's name for the upload.
func (u *Upload) ID() string { return u.id }

// Adopt makes a part that the store holds already part of the object.
func (u *Upload) Adopt(part Part) {
	sum := base64.StdEncoding.EncodeToString(part.SHA256)
	u.add(types.CompletedPart{ETag: &part.etag, PartNumber: aws.Int32(int32(part.Number)), ChecksumSHA256: &sum})
}

// PartSHA256 is the digest of a part that was sent or adopted, as the store
// states it, or nil.
func (u *Upload) PartSHA256(number int) []byte {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.sums[int32(number)]
}

func (u *Upload) add(part types.CompletedPart) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.parts = append(u.parts, part)
	if raw := rawSHA256(part.ChecksumSHA256); raw != nil {
		u.sums[*part.PartNumber] = raw
	}
}

func rawSHA256(text *string) []byte {
	raw, err := base64.StdEncoding.DecodeString(aws.ToString(text))
	if err != nil || len(raw) != sha256.Size {
		return nil
	}
	return raw
}
