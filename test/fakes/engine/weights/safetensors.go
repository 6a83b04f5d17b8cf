package weights

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// maxHeader is the limit that the safetensors format sets for its header.
const maxHeader = 100_000_000

// tensor is one entry of a safetensors header.
type tensor struct {
	DType   string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// width is the size of one element in bits, by the names of the safetensors format.
func width(dtype string) (bits int64, known bool) {
	switch dtype {
	case "F64", "I64", "U64", "C64":
		return 64, true
	case "F32", "I32", "U32":
		return 32, true
	case "F16", "BF16", "I16", "U16":
		return 16, true
	case "BOOL", "I8", "U8", "F8_E4M3", "F8_E5M2", "F8_E8M0":
		return 8, true
	case "F6_E2M3", "F6_E3M2":
		return 6, true
	case "F4":
		return 4, true
	default:
		return 0, false
	}
}

// readShard reads one safetensors file to its end: eight bytes of header length, little endian, a JSON header, then the
// tensors without gap or overlap. It returns the names of the tensors.
func readShard(ctx context.Context, src Source, name string, size int64) (map[string]bool, error) {
	r, err := src.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	names, data, err := readHeader(r, size)
	if err != nil {
		return nil, fmt.Errorf("load weights: %s: %w", name, err)
	}
	n, err := io.Copy(io.Discard, r)
	if err != nil {
		return nil, fmt.Errorf("load weights: read %s: %w", name, err)
	}
	if n != data {
		return nil, fmt.Errorf("load weights: %s: %d bytes of tensors, its header says %d", name, n, data)
	}
	return names, nil
}

// readHeader checks the header against the file size, and returns tensor names and the length of what follows.
func readHeader(r io.Reader, size int64) (names map[string]bool, data int64, err error) {
	var length uint64
	if err := binary.Read(r, binary.LittleEndian, &length); err != nil {
		return nil, 0, fmt.Errorf("read header length: %w", err)
	}
	if length > maxHeader || int64(length)+8 > size {
		return nil, 0, fmt.Errorf("header of %d bytes in a file of %d", length, size)
	}
	header := make([]byte, length)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, 0, fmt.Errorf("read header: %w", err)
	}
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(header, &entries); err != nil {
		return nil, 0, fmt.Errorf("parse header: %w", err)
	}
	delete(entries, "__metadata__")
	if len(entries) == 0 {
		return nil, 0, errors.New("no tensor in the header")
	}
	names = make(map[string]bool, len(entries))
	spans := make([][2]int64, 0, len(entries))
	for name, raw := range entries {
		var t tensor
		if err := json.Unmarshal(raw, &t); err != nil {
			return nil, 0, fmt.Errorf("parse tensor %s: %w", name, err)
		}
		if err := t.check(); err != nil {
			return nil, 0, fmt.Errorf("tensor %s: %w", name, err)
		}
		names[name] = true
		spans = append(spans, t.Offsets)
	}
	slices.SortFunc(spans, func(a, b [2]int64) int {
		if a[0] != b[0] {
			return int(min(1, max(-1, a[0]-b[0])))
		}
		return int(min(1, max(-1, a[1]-b[1])))
	})
	for _, s := range spans {
		if s[0] != data {
			return nil, 0, fmt.Errorf("tensors leave a gap or overlap at byte %d", data)
		}
		data = s[1]
	}
	if total := int64(length) + 8 + data; total != size {
		return nil, 0, fmt.Errorf("file has %d bytes, its header says %d", size, total)
	}
	return names, data, nil
}

// check compares the bytes of a tensor with its shape and type.
func (t tensor) check() error {
	bits, known := width(t.DType)
	if !known {
		return fmt.Errorf("unknown dtype %q", t.DType)
	}
	for _, n := range t.Shape {
		if n < 0 {
			return fmt.Errorf("negative dimension %d", n)
		}
		bits *= n
	}
	if span := t.Offsets[1] - t.Offsets[0]; t.Offsets[0] < 0 || span < 0 || span*8 != bits {
		return fmt.Errorf("%d bytes for shape %v of %s", span, t.Shape, t.DType)
	}
	return nil
}
