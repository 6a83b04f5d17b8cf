package hub

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// Reads of any size at any place give the same bytes, and blocks differ.
func TestContent(t *testing.T) {
	c := generated([]byte("head"), 2*blockSize+777, 42)
	whole := make([]byte, c.size)
	if _, err := c.ReadAt(whole, 0); err != nil {
		t.Fatal(err)
	}
	for _, offset := range []int64{0, 3, 4, 5, 11, 12, blockSize, blockSize + 4, blockSize + 9, 2*blockSize + 1, c.size - 1, c.size} {
		for _, length := range []int64{0, 1, 7, 8, 9, blockSize + 3} {
			got := make([]byte, length)
			n, err := c.ReadAt(got, offset)
			want := whole[offset:min(offset+length, c.size)]
			if !bytes.Equal(got[:n], want) {
				t.Errorf("%d bytes at %d: other bytes", length, offset)
			}
			if short := int64(n) < length; short != errors.Is(err, io.EOF) {
				t.Errorf("%d bytes at %d: got %d, %v", length, offset, n, err)
			}
		}
	}
	if bytes.Equal(whole[4:4+blockSize], whole[4+blockSize:4+2*blockSize]) {
		t.Error("two blocks are equal: parts in the wrong order would go unnoticed")
	}
}
