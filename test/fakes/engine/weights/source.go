package weights

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Open returns the source of a model location: a directory, or s3://bucket/prefix with the usual AWS environment
// (AWS_ENDPOINT_URL, AWS_REGION, keys).
func Open(ctx context.Context, location string) (Source, error) {
	if bucket, prefix, ok := SplitS3(location); ok {
		client, err := newClient(ctx)
		if err != nil {
			return nil, err
		}
		return &bucketSource{client: client, bucket: bucket, prefix: prefix}, nil
	}
	info, err := os.Stat(location)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil, fmt.Errorf("open model %s: %w", location, ErrLocation)
	}
	if err != nil {
		return nil, fmt.Errorf("open model: %w", err)
	}
	return Directory(os.DirFS(location)), nil
}

// Directory reads a model from a file system.
func Directory(fsys fs.FS) Source { return directory{fsys} }

type directory struct{ fsys fs.FS }

func (d directory) List(ctx context.Context) ([]File, error) {
	var files []File
	err := fs.WalkDir(d.fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		// Stat and not entry.Info: models are often links into a cache.
		info, err := fs.Stat(d.fsys, name)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			files = append(files, File{Name: name, Size: info.Size()})
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("list model: %w", err)
	}
	return files, nil
}

func (d directory) Open(_ context.Context, name string) (io.ReadCloser, error) {
	f, err := d.fsys.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open model file: %w", err)
	}
	return f, nil
}

type bucketSource struct {
	client         *s3.Client
	bucket, prefix string
}

func newClient(ctx context.Context) (*s3.Client, error) {
	// A default region, because S3-compatible servers do not care and the SDK refuses to work without one.
	c, err := config.LoadDefaultConfig(ctx, config.WithDefaultRegion("us-east-1"))
	if err != nil {
		return nil, fmt.Errorf("configure s3: %w", err)
	}
	return s3.NewFromConfig(c, func(o *s3.Options) {
		// With an endpoint of one's own, the bucket is rarely a host name.
		o.UsePathStyle = o.BaseEndpoint != nil
		o.DisableLogOutputChecksumValidationSkipped = true
	}), nil
}

func (b *bucketSource) List(ctx context.Context) ([]File, error) {
	var files []File
	pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{Bucket: &b.bucket, Prefix: &b.prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list s3://%s/%s: %w", b.bucket, b.prefix, err)
		}
		for _, o := range page.Contents {
			name := strings.TrimPrefix(aws.ToString(o.Key), b.prefix)
			if name != "" && !strings.HasSuffix(name, "/") {
				files = append(files, File{Name: name, Size: aws.ToInt64(o.Size)})
			}
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("list s3://%s/%s: no object has this prefix", b.bucket, b.prefix)
	}
	return files, nil
}

func (b *bucketSource) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	out, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.bucket, Key: aws.String(b.prefix + name)})
	if err != nil {
		return nil, fmt.Errorf("read s3://%s/%s%s: %w", b.bucket, b.prefix, name, err)
	}
	return out.Body, nil
}
