package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

const (
	mebibyte = 1 << 20
	// maxParts is S3's limit on the parts of one object.
	maxParts = 10_000
	// DefaultPartSize suits objects up to 156 GiB.
	DefaultPartSize = 16 * mebibyte
	// afterCancel is how long a request may take that is finished although the
	// work itself was cancelled.
	afterCancel = 30 * time.Second
)

// PartSize is the size of all parts but the last for an object of size bytes.
// It follows from the size alone, so a later run cuts the same parts.
func PartSize(size int64) int64 {
	least := (size + maxParts - 1) / maxParts
	return max(DefaultPartSize, (least+mebibyte-1)/mebibyte*mebibyte)
}

// Parts is the number of parts of an object of size bytes.
func Parts(size int64) int {
	part := PartSize(size)
	return int((size + part - 1) / part)
}

// Upload is an object that comes into being part by part, and only by Complete.
type Upload struct {
	bucket *Bucket
	key    string
	id     string

	mu    sync.Mutex
	parts []types.CompletedPart
	sums  map[int32][]byte
}

// CreateUpload starts an object of several parts. Once sent, the request is
// waited for even if ctx ends: an upload whose id nobody learnt could not be
// aborted, and would stay.
func (b *Bucket) CreateUpload(ctx context.Context, key string, options PutOptions) (*Upload, error) {
	input := &s3.CreateMultipartUploadInput{
		Bucket: &b.config.Bucket, Key: &key, Metadata: options.Metadata,
		ChecksumAlgorithm: types.ChecksumAlgorithmSha256, ChecksumType: types.ChecksumTypeComposite,
	}
	if options.ContentType != "" {
		input.ContentType = &options.ContentType
	}
	if b.config.KMSKey != "" {
		input.ServerSideEncryption, input.SSEKMSKeyId = types.ServerSideEncryptionAwsKms, &b.config.KMSKey
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterCancel)
	defer cancel()
	out, err := b.client.CreateMultipartUpload(finish, input)
	if err != nil {
		return nil, b.fail("start the upload of", key, b.writeActions(), err)
	}
	return &Upload{bucket: b, key: key, id: aws.ToString(out.UploadId), sums: make(map[int32][]byte)}, nil
}

// Part sends one part; numbers start at 1. Its SHA-256 is computed once, for
// the checksum header and for the signature. Parts may be sent at the same time.
func (u *Upload) Part(ctx context.Context, number int, body []byte) error {
	sum := sha256.Sum256(body)
	out, err := u.bucket.client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: &u.bucket.config.Bucket, Key: &u.key, UploadId: &u.id, PartNumber: aws.Int32(int32(number)),
		Body: bytes.NewReader(body), ContentLength: aws.Int64(int64(len(body))), ChecksumSHA256: aws.String(base64.StdEncoding.EncodeToString(sum[:])),
	}, payloadHash(sum))
	if err != nil {
		return u.bucket.fail(fmt.Sprintf("write part %d of", number), u.key, u.bucket.writeActions(), err)
	}
	u.add(types.CompletedPart{ETag: out.ETag, PartNumber: aws.Int32(int32(number)), ChecksumSHA256: out.ChecksumSHA256})
	return nil
}

// Complete makes the object of the parts sent, size bytes in all, and of no
// other number of bytes. ifAbsent refuses to replace an object.
func (u *Upload) Complete(ctx context.Context, size int64, ifAbsent bool) (Object, error) {
	u.mu.Lock()
	parts := slices.Clone(u.parts)
	u.mu.Unlock()
	slices.SortFunc(parts, func(a, b types.CompletedPart) int { return int(*a.PartNumber - *b.PartNumber) })
	input := &s3.CompleteMultipartUploadInput{
		Bucket: &u.bucket.config.Bucket, Key: &u.key, UploadId: &u.id,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts}, MpuObjectSize: &size,
	}
	if ifAbsent {
		input.IfNoneMatch = aws.String("*")
	}
	out, err := u.bucket.client.CompleteMultipartUpload(ctx, input)
	if err != nil {
		return Object{}, u.bucket.fail("complete", u.key, u.bucket.writeActions(), err)
	}
	object := Object{
		Key: u.key, Size: size, ETag: aws.ToString(out.ETag), VersionID: versionID(out.VersionId),
		ChecksumSHA256: aws.ToString(out.ChecksumSHA256), ChecksumType: string(out.ChecksumType),
	}
	if want := u.composite(len(parts)); want != "" && object.ChecksumSHA256 != "" && object.ChecksumSHA256 != want {
		return Object{}, &Error{Act: "complete", Bucket: u.bucket.config.Bucket, Key: u.key, Cause: Mismatch,
			Err: fmt.Errorf("the checksum over the parts is %s, the store says %s", want, object.ChecksumSHA256)}
	}
	return object, nil
}

// Composite is the checksum that the object will have once all of its parts,
// which are as many as given, are sent; "" where the store does not state theirs.
func (u *Upload) Composite(parts int) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.composite(parts)
}

// composite is the checksum that S3 gives to an object of parts: SHA-256 over
// the raw digests of the parts, and their number.
func (u *Upload) composite(parts int) string {
	sum := sha256.New()
	for number := range parts {
		raw, found := u.sums[int32(number)+1]
		if !found {
			return ""
		}
		sum.Write(raw)
	}
	return fmt.Sprintf("%s-%d", base64.StdEncoding.EncodeToString(sum.Sum(nil)), parts)
}

// Abort gives the parts up, so that they do not stay behind, invisible and
// billed. It works after ctx has ended too: that is when it is needed.
func (u *Upload) Abort(ctx context.Context) error {
	return u.bucket.AbortUpload(ctx, OpenUpload{Key: u.key, ID: u.id})
}

// OpenUpload is an upload that was started and neither completed nor aborted.
type OpenUpload struct {
	Key, ID   string
	Initiated time.Time
	// Checksum is the algorithm that it was started with, such as SHA256; ""
	// where the store does not say.
	Checksum string
}

// OpenUploads lists the uploads below a prefix.
func (b *Bucket) OpenUploads(ctx context.Context, prefix string) ([]OpenUpload, error) {
	var uploads []OpenUpload
	pages := s3.NewListMultipartUploadsPaginator(b.client, &s3.ListMultipartUploadsInput{Bucket: &b.config.Bucket, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, b.fail("list the uploads of", prefix, "s3:ListBucketMultipartUploads", err)
		}
		for _, upload := range page.Uploads {
			uploads = append(uploads, OpenUpload{Key: aws.ToString(upload.Key), ID: aws.ToString(upload.UploadId), Initiated: aws.ToTime(upload.Initiated), Checksum: string(upload.ChecksumAlgorithm)})
		}
	}
	return uploads, nil
}

// AbortUpload gives an upload's parts up. One that is gone is no error.
func (b *Bucket) AbortUpload(ctx context.Context, upload OpenUpload) error {
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterCancel)
	defer cancel()
	_, err := b.client.AbortMultipartUpload(clean, &s3.AbortMultipartUploadInput{Bucket: &b.config.Bucket, Key: &upload.Key, UploadId: &upload.ID})
	if err = b.fail("abort the upload of", upload.Key, "s3:AbortMultipartUpload", err); CauseOf(err) == NoObject {
		return nil
	}
	return err
}
