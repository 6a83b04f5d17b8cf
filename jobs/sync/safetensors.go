package sync

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// maxHeader is the longest header that the safetensors library reads.
const maxHeader = 25_000_000

// header collects the start of a safetensors file from its bytes in order, to
// check that the file is what its name says: not a git-lfs pointer, an error
// page, or the front part of a longer file.
type header struct {
	start []byte
}

func (h *header) write(p []byte) {
	for len(p) > 0 && len(h.start) < h.want() {
		taken := min(len(p), h.want()-len(h.start))
		h.start = append(h.start, p[:taken]...)
		p = p[taken:]
	}
}

// want is how many bytes of the file are of interest.
func (h *header) want() int {
	if len(h.start) < 8 {
		return 8
	}
	length := binary.LittleEndian.Uint64(h.start)
	if length > maxHeader {
		return 8
	}
	return 8 + int(length)
}

// check compares the header with the size of the whole file.
func (h *header) check(size int64) error {
	if strings.HasPrefix(string(h.start), "version ") {
		return fmt.Errorf("it is a git-lfs pointer, not the weights")
	}
	if len(h.start) < 8 {
		return fmt.Errorf("it is too short for a safetensors file")
	}
	length := binary.LittleEndian.Uint64(h.start)
	if length > maxHeader || int64(length)+8 > size || len(h.start) < 8+int(length) {
		return fmt.Errorf("it is not a safetensors file: its first 8 bytes are no header length")
	}
	var tensors map[string]json.RawMessage
	if err := json.Unmarshal(h.start[8:8+length], &tensors); err != nil {
		return fmt.Errorf("it is not a safetensors file: its header is not JSON")
	}
	var end uint64
	for name, raw := range tensors {
		if name == "__metadata__" {
			continue
		}
		var tensor struct {
			Offsets [2]uint64 `json:"data_offsets"`
		}
		if err := json.Unmarshal(raw, &tensor); err != nil || tensor.Offsets[0] > tensor.Offsets[1] || tensor.Offsets[1] > math.MaxInt64/2 {
			return fmt.Errorf("tensor %q has no valid data_offsets", name)
		}
		end = max(end, tensor.Offsets[1])
	}
	if whole := int64(length) + 8 + int64(end); whole != size {
		return fmt.Errorf("its header describes %d bytes, the file has %d", whole, size)
	}
	return nil
}
