package runner

import (
	"bytes"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/test/s3server"
)

// TestPrefix reads a delivery from a real S3 server.
func TestPrefix(t *testing.T) {
	server := s3server.Start(t)
	server.Bucket(t, "models")
	t.Setenv("AWS_ACCESS_KEY_ID", s3server.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3server.SecretKey)
	for key, data := range map[string]string{"base/a/_MANIFEST.json": "{}", "base/a/empty": ""} {
		if _, err := server.Client().PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("models"), Key: &key, Body: bytes.NewReader([]byte(data))}); err != nil {
			t.Fatal(err)
		}
	}
	for _, uri := range []string{"s3://models/base/a", "s3://models/base/a/"} {
		p, err := openPrefix(t.Context(), record.RolloutModel{URI: uri, S3Endpoint: server.URL, S3Region: "us-east-1"}, func(record.Event) {})
		if err != nil {
			t.Fatal(err)
		}
		if data, err := p.Get(t.Context(), record.ManifestName); err != nil || string(data) != "{}" {
			t.Errorf("%s: manifest %q, error %v", uri, data, err)
		}
		if data, err := p.Get(t.Context(), "empty"); err != nil || len(data) != 0 {
			t.Errorf("%s: an empty object is %q, error %v", uri, data, err)
		}
		if size, _, err := p.Stat(t.Context(), record.ManifestName); err != nil || size != 2 {
			t.Errorf("%s: %d bytes, error %v", uri, size, err)
		}
		if _, err := p.Get(t.Context(), "gone"); failure.KindOf(err) != failure.NotFound {
			t.Errorf("%s: an absent object: %v", uri, err)
		}
		if _, _, err := p.Stat(t.Context(), "gone"); failure.KindOf(err) != failure.NotFound {
			t.Errorf("%s: an absent object: %v", uri, err)
		}
	}
}
