package s3server

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStart(t *testing.T) {
	server := Start(t)
	bucket := server.Bucket(t, "models")
	if diff := cmp.Diff([]string{}, server.Keys(t, bucket)); diff != "" {
		t.Errorf("keys of a new bucket (-want +got):\n%s", diff)
	}
	if n := server.OpenUploads(t, bucket); n != 0 {
		t.Errorf("a new bucket has %d open uploads", n)
	}
}
