package weights_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine/weights"
)

// shard is a safetensors file: the header and n bytes of tensors.
func shard(header string, n int) string {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return string(b) + header + strings.Repeat("w", n)
}

func tensor(name string, begin, end int) string {
	return fmt.Sprintf(`%q:{"dtype":"BF16","shape":[%d],"data_offsets":[%d,%d]}`, name, (end-begin)/2, begin, end)
}

// whole is a complete model of two shards.
func whole() map[string]string {
	return map[string]string{
		"config.json":                      `{"max_position_embeddings":4096,"model_type":"qwen2"}`,
		"model.safetensors.index.json":     `{"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}}`,
		"model-00001-of-00002.safetensors": shard(`{"__metadata__":{"format":"pt"},`+tensor("a", 0, 600)+`}`, 600),
		"model-00002-of-00002.safetensors": shard(`{`+tensor("b", 0, 10)+`,`+tensor("c", 10, 400)+`}`, 400),
		"sub/extra.safetensors":            "not read",
	}
}

// cases are models with one thing wrong each, and what the error has to say.
func cases() map[string]struct {
	change func(map[string]string)
	want   string
} {
	second := "model-00002-of-00002.safetensors"
	set := func(text string) func(map[string]string) {
		return func(files map[string]string) { files[second] = text }
	}
	return map[string]struct {
		change func(map[string]string)
		want   string
	}{
		"complete":         {func(map[string]string) {}, ""},
		"no config":        {func(f map[string]string) { delete(f, "config.json") }, "no config.json in the model"},
		"broken config":    {func(f map[string]string) { f["config.json"] = "{" }, "read config.json: unexpected EOF"},
		"missing shard":    {func(f map[string]string) { delete(f, second) }, second + " is missing, but model.safetensors.index.json names it"},
		"no shard at all":  {func(f map[string]string) { clear(f); f["config.json"] = "{}" }, "no *.safetensors file in the model"},
		"tensor not there": {set(shard(`{`+tensor("c", 0, 400)+`}`, 400)), "tensor b is not in " + second},
		"cut":              {set(shard(`{`+tensor("b", 0, 400)+`}`, 399)), "its header says"},
		"too long":         {set(shard(`{`+tensor("b", 0, 400)+`}`, 401)), "its header says"},
		"empty":            {set(""), "read header length: EOF"},
		"huge header":      {set("\xff\xff\xff\xff\xff\xff\xff\x7f"), "header of 9223372036854775807 bytes in a file of 8"},
		"header not json":  {set(shard(`{`, 0)), "parse header"},
		"no tensor":        {set(shard(`{}`, 0)), "no tensor in the header"},
		"gap":              {set(shard(`{`+tensor("b", 0, 10)+`,`+tensor("c", 12, 400)+`}`, 400)), "gap or overlap at byte 10"},
		"overlap":          {set(shard(`{`+tensor("b", 0, 10)+`,`+tensor("c", 8, 400)+`}`, 400)), "gap or overlap at byte 10"},
		"wrong shape":      {set(shard(`{"b":{"dtype":"F32","shape":[2,3],"data_offsets":[0,23]}}`, 23)), "tensor b: 23 bytes for shape [2 3] of F32"},
		"unknown dtype":    {set(shard(`{"b":{"dtype":"X9","shape":[1],"data_offsets":[0,1]}}`, 1)), `tensor b: unknown dtype "X9"`},
		"html in place":    {set("<html>denied</html>"), "bytes in a file of 19"},
	}
}

func check(t *testing.T, m weights.Model, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Fatal(err)
		}
		complete := weights.Model{Files: 2, Bytes: m.Bytes, Tensors: 3, MaxLength: 4096, Type: "qwen2"}
		if diff := cmp.Diff(complete, m); diff != "" || m.Bytes < 1000 {
			t.Errorf("model of %d bytes (-want +got):\n%s", m.Bytes, diff)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestLoadDirectory(t *testing.T) {
	for name, test := range cases() {
		t.Run(name, func(t *testing.T) {
			files := whole()
			test.change(files)
			fsys := fstest.MapFS{}
			for name, content := range files {
				fsys[name] = &fstest.MapFile{Data: []byte(content)}
			}
			m, err := weights.Load(t.Context(), weights.Directory(fsys), nil)
			check(t, m, err, test.want)
		})
	}
}

func TestProgress(t *testing.T) {
	fsys := fstest.MapFS{}
	for name, content := range whole() {
		fsys[name] = &fstest.MapFile{Data: []byte(content)}
	}
	var got []string
	if _, err := weights.Load(t.Context(), weights.Directory(fsys), func(done, total int) {
		got = append(got, fmt.Sprintf("%d/%d", done, total))
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1/2", "2/2"}, got); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

func TestSplitS3(t *testing.T) {
	for location, want := range map[string][3]string{
		"s3://b/models/x":  {"b", "models/x/", "true"},
		"s3://b/models/x/": {"b", "models/x/", "true"},
		"s3://b":           {"b", "", "true"},
		"s3:///x":          {"", "x/", "false"},
		"/models":          {"", "", "false"},
	} {
		bucket, prefix, ok := weights.SplitS3(location)
		if got := [3]string{bucket, prefix, fmt.Sprint(ok)}; got != want {
			t.Errorf("%s: got %v, want %v", location, got, want)
		}
	}
}
