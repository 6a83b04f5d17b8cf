package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Object is what the store says about an object. A field is "" where the store
// does not say.
type Object struct {
	Key       string
	Size      int64
	ETag      string
	VersionID string
	// ChecksumSHA256 is base64, with -N behind it where it is a checksum over
	// the checksums of N parts (ChecksumType COMPOSITE).
	ChecksumSHA256 string
	ChecksumType   string
	// Metadata has lower-case keys.
	Metadata map[string]string
	// Modified is known from a listing alone.
	Modified time.Time
}

// SHA256 is the object's whole-content digest in hex as the store computed it,
// or "" where it has none: an object of several parts has only theirs.
func (o Object) SHA256() string {
	if strings.Contains(o.ChecksumSHA256, "-") || o.ChecksumType == string(types.ChecksumTypeComposite) {
		return ""
	}
	raw, err := base64.StdEncoding.DecodeString(o.ChecksumSHA256)
	if err != nil {
		return ""
	}
	return hex.EncodeToString(raw)
}

// Head asks for an object's attributes. The cause of an absent key is NoObject;
// it is Denied where the credentials may not list the bucket.
func (b *Bucket) Head(ctx context.Context, key string) (Object, error) {
	out, err := b.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.config.Bucket, Key: &key, ChecksumMode: types.ChecksumModeEnabled})
	if err != nil {
		return Object{}, b.fail("look at", key, "s3:GetObject, and s3:ListBucket to tell an absent key", err)
	}
	object := Object{
		Key: key, Size: aws.ToInt64(out.ContentLength), ETag: aws.ToString(out.ETag), VersionID: versionID(out.VersionId),
		ChecksumSHA256: aws.ToString(out.ChecksumSHA256), ChecksumType: string(out.ChecksumType), Metadata: make(map[string]string),
	}
	for name, value := range out.Metadata {
		object.Metadata[strings.ToLower(name)] = value
	}
	return object, nil
}

// versionID drops the "null" of a bucket without versions.
func versionID(id *string) string {
	if aws.ToString(id) == "null" {
		return ""
	}
	return aws.ToString(id)
}

// PutOptions are the attributes of a new object.
type PutOptions struct {
	ContentType string
	Metadata    map[string]string
	// IfAbsent refuses to replace an object (If-None-Match: *).
	IfAbsent bool
	// IfMatch refuses to replace an object of another ETag; "" replaces any.
	IfMatch string
	// SHA256 is the expected digest in hex; "" has it computed from the body.
	SHA256 string
}

// Put stores an object in one piece. The store compares its SHA-256.
func (b *Bucket) Put(ctx context.Context, key string, body []byte, options PutOptions) (Object, error) {
	input := &s3.PutObjectInput{
		Bucket: &b.config.Bucket, Key: &key, Body: bytes.NewReader(body), ContentLength: aws.Int64(int64(len(body))),
		Metadata: options.Metadata,
	}
	var call []func(*s3.Options)
	if options.SHA256 != "" {
		raw, err := hex.DecodeString(options.SHA256)
		if err != nil {
			return Object{}, fmt.Errorf("put s3://%s/%s: %w", b.config.Bucket, key, err)
		}
		input.ChecksumSHA256 = aws.String(base64.StdEncoding.EncodeToString(raw))
	} else {
		sum := sha256.Sum256(body)
		input.ChecksumSHA256 = aws.String(base64.StdEncoding.EncodeToString(sum[:]))
		call = append(call, payloadHash(sum))
	}
	if options.ContentType != "" {
		input.ContentType = &options.ContentType
	}
	if options.IfAbsent {
		input.IfNoneMatch = aws.String("*")
	}
	if options.IfMatch != "" {
		input.IfMatch = &options.IfMatch
	}
	if b.config.KMSKey != "" {
		input.ServerSideEncryption, input.SSEKMSKeyId = types.ServerSideEncryptionAwsKms, &b.config.KMSKey
	}
	out, err := b.client.PutObject(ctx, input, call...)
	if err != nil {
		return Object{}, b.fail("write", key, b.writeActions(), err)
	}
	return Object{
		Key: key, Size: int64(len(body)), ETag: aws.ToString(out.ETag), VersionID: versionID(out.VersionId),
		ChecksumSHA256: aws.ToString(out.ChecksumSHA256), ChecksumType: string(out.ChecksumType), Metadata: options.Metadata,
	}, nil
}

func (b *Bucket) writeActions() string {
	if b.config.KMSKey != "" {
		return "s3:PutObject, and kms:GenerateDataKey and kms:Decrypt on the key"
	}
	return "s3:PutObject"
}

// Get reads an object from offset; length below 0 reads to its end.
func (b *Bucket) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	input := &s3.GetObjectInput{Bucket: &b.config.Bucket, Key: &key}
	switch {
	case length >= 0:
		input.Range = aws.String(fmt.Sprintf("bytes=%d-%d", offset, offset+length-1))
	case offset > 0:
		input.Range = aws.String(fmt.Sprintf("bytes=%d-", offset))
	}
	out, err := b.client.GetObject(ctx, input)
	if err != nil {
		return nil, b.fail("read", key, "s3:GetObject", err)
	}
	return out.Body, nil
}

// List goes through all objects whose key begins with prefix, in key order. It
// asks for keys in URL encoding: XML cannot hold every character of a key.
func (b *Bucket) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{Bucket: &b.config.Bucket, Prefix: &prefix, EncodingType: types.EncodingTypeUrl})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(Object{}, b.fail("list", prefix, "s3:ListBucket", err))
				return
			}
			for _, item := range page.Contents {
				key := aws.ToString(item.Key)
				// Some servers ignore the wish; they do not confirm it either.
				if page.EncodingType == types.EncodingTypeUrl {
					if decoded, err := url.QueryUnescape(key); err == nil {
						key = decoded
					}
				}
				if !yield(Object{Key: key, Size: aws.ToInt64(item.Size), ETag: aws.ToString(item.ETag), Modified: aws.ToTime(item.LastModified)}, nil) {
					return
				}
			}
		}
	}
}

// Delete removes an object; an absent one is no error.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	_, err := b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.config.Bucket, Key: &key})
	return b.fail("delete", key, "s3:DeleteObject", err)
}
