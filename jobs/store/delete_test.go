package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

// TestListAndDelete: keys of any characters are listed as they are, and deleted.
func TestListAndDelete(t *testing.T) {
	bucket, server := open(t)
	want := []string{"a/100%", "a/cr\r\nlf", "a/plus+ and space", "a/tab\t", "a/ü", "b"}
	for _, key := range want {
		if _, err := bucket.Put(t.Context(), key, []byte("x"), store.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for object, err := range bucket.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if time.Since(object.Modified) > time.Minute || object.Size != 1 {
			t.Errorf("%q: %d bytes, modified %s", object.Key, object.Size, object.Modified)
		}
		got = append(got, object.Key)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	if err := bucket.DeleteAll(t.Context(), append([]string{"a/never there"}, want[:len(want)-1]...)); err != nil {
		t.Fatal(err)
	}
	if left := server.Keys(t, "models"); !slices.Equal(left, []string{"b"}) {
		t.Errorf("left are %q", left)
	}
	if keeps, err := bucket.KeepsVersions(t.Context()); err != nil || keeps {
		t.Errorf("keeps versions %t, error %v", keeps, err)
	}
}

// TestDeleteMany: more keys than one request takes.
func TestDeleteMany(t *testing.T) {
	bucket, server := open(t)
	var keys []string
	for i := range 1100 {
		keys = append(keys, fmt.Sprintf("many/%d", i))
	}
	for _, key := range keys[1000:] {
		if _, err := bucket.Put(t.Context(), key, nil, store.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := bucket.DeleteAll(t.Context(), keys); err != nil {
		t.Fatal(err)
	}
	if left := server.Keys(t, "models"); len(left) > 0 {
		t.Errorf("%d are left", len(left))
	}
}
