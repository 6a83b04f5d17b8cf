package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// maxDelete is S3's limit on the keys of one DeleteObjects.
const maxDelete = 1000

// DeleteAll removes objects in as few requests as possible; absent ones are no
// error. The first object that the store refuses to delete ends it.
func (b *Bucket) DeleteAll(ctx context.Context, keys []string) error {
	for batch := range slices.Chunk(keys, maxDelete) {
		names := make([]types.ObjectIdentifier, len(batch))
		for i := range batch {
			names[i].Key = &batch[i]
		}
		out, err := b.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
			Bucket: &b.config.Bucket, Delete: &types.Delete{Objects: names, Quiet: aws.Bool(true)}, ChecksumAlgorithm: types.ChecksumAlgorithmSha256,
		})
		if err != nil {
			return b.fail("delete", batch[0], "s3:DeleteObject", err)
		}
		for _, refused := range out.Errors {
			failure := &Error{Act: "delete", Bucket: b.config.Bucket, Key: aws.ToString(refused.Key), Action: "s3:DeleteObject",
				Code: aws.ToString(refused.Code), Err: fmt.Errorf("%s (%s)", aws.ToString(refused.Message), aws.ToString(refused.Code))}
			failure.Cause = causeOf(failure)
			return failure
		}
	}
	return nil
}

// KeepsVersions says whether the bucket keeps, or kept, the old versions of
// objects, so that a delete frees no space.
func (b *Bucket) KeepsVersions(ctx context.Context) (bool, error) {
	out, err := b.client.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: &b.config.Bucket})
	if err != nil {
		return false, b.fail("read the versioning of", "", "s3:GetBucketVersioning", err)
	}
	return out.Status != "", nil
}
