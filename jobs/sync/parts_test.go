package sync

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/hub"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

// The cases are what Python's fnmatch.fnmatchcase answers.
func TestFnmatch(t *testing.T) {
	tests := map[string]struct {
		pattern string
		yes, no []string
	}{
		"star crosses slashes": {pattern: "*.safetensors", yes: []string{"a.safetensors", "sub/x.safetensors", ".safetensors"}, no: []string{"a.safetensors.index.json", "A.SAFETENSORS"}},
		"folder":               {pattern: "original/", yes: []string{"original/a", "original/b/c"}, no: []string{"original", "x/original/a"}},
		"backslash":            {pattern: `original\*`, yes: []string{"original/a"}},
		"question mark":        {pattern: "?.json", yes: []string{"a.json", "/.json", "ü.json"}, no: []string{"ab.json", ".json"}},
		"set":                  {pattern: "model-[0-9].bin", yes: []string{"model-3.bin"}, no: []string{"model-x.bin", "model-10.bin"}},
		"negated set":          {pattern: "[!a]x", yes: []string{"bx", "/x"}, no: []string{"ax"}},
		"bracket in set":       {pattern: "[]]x", yes: []string{"]x"}, no: []string{"[x"}},
		"open bracket":         {pattern: "a[b", yes: []string{"a[b"}, no: []string{"ab"}},
		"caret is a character": {pattern: "[^a]", yes: []string{"^", "a"}, no: []string{"b"}},
		"no expression":        {pattern: "a.b+(c)", yes: []string{"a.b+(c)"}, no: []string{"axb+(c)", "a.bb(c)"}},
		"braces are plain":     {pattern: "{a,b}", yes: []string{"{a,b}"}, no: []string{"a"}},
		"double star":          {pattern: "**/x", yes: []string{"a/x", "a/b/x"}, no: []string{"x"}},
		"newline":              {pattern: "a*", yes: []string{"a\nb"}},
		"not ASCII":            {pattern: "größe*", yes: []string{"größe.txt"}, no: []string{"grö"}},
		"empty":                {pattern: "", yes: []string{""}, no: []string{"a"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			expression, err := fnmatch(test.pattern)
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range test.yes {
				if !expression.MatchString(path) {
					t.Errorf("%q does not match %q", test.pattern, path)
				}
			}
			for _, path := range test.no {
				if expression.MatchString(path) {
					t.Errorf("%q matches %q", test.pattern, path)
				}
			}
		})
	}
}

func named(paths ...string) []hub.File {
	files := make([]hub.File, 0, len(paths))
	for _, path := range paths {
		files = append(files, hub.File{Path: path})
	}
	return files
}

func TestChoose(t *testing.T) {
	// The layouts of vllm#2480, modelexpress#173 and Mistral's own releases.
	mixed := named("config.json", "model.safetensors", "pytorch_model.bin", "consolidated.safetensors", "original/model.pth", "onnx/m.onnx",
		"README.md", "tokenizer.model", "modeling_x.py", "LICENSE", ".gitattributes", "sub/adapter.bin", "m.gguf")
	tests := map[string]struct {
		files []hub.File
		plan  record.SyncPlan
		want  []string
	}{
		"all by default":        {files: named("b", "a.md"), want: []string{"a.md", "b"}},
		"exclude wins":          {files: named("a.json", "b.json"), plan: record.SyncPlan{Include: []string{"*.json"}, Exclude: []string{"a*"}}, want: []string{"b.json"}},
		"include only":          {files: named("a.json", "b.bin"), plan: record.SyncPlan{Include: []string{"*.json"}}, want: []string{"a.json"}},
		"vllm":                  {files: mixed, plan: record.SyncPlan{Preset: record.PresetVLLM}, want: []string{"LICENSE", "config.json", "model.safetensors", "modeling_x.py", "tokenizer.model"}},
		"include beats preset":  {files: mixed, plan: record.SyncPlan{Preset: record.PresetVLLM, Include: []string{"*.bin"}}, want: []string{"pytorch_model.bin", "sub/adapter.bin"}},
		"only bin weights":      {files: named("config.json", "pytorch_model.bin"), plan: record.SyncPlan{Preset: record.PresetVLLM}, want: []string{"config.json", "pytorch_model.bin"}},
		"mistral's own":         {files: named("params.json", "consolidated.safetensors", "tekken.json"), plan: record.SyncPlan{Preset: record.PresetVLLM}, want: []string{"consolidated.safetensors", "params.json", "tekken.json"}},
		"nested weights do not": {files: named("x/model.safetensors", "pytorch_model.bin"), plan: record.SyncPlan{Preset: record.PresetVLLM}, want: []string{"pytorch_model.bin", "x/model.safetensors"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			chosen, skipped, err := choose(test.files, test.plan)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, file := range chosen {
				got = append(got, file.Path)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("chosen (-want +got):\n%s", diff)
			}
			if len(chosen)+len(skipped) != len(test.files) {
				t.Errorf("%d chosen and %d skipped of %d", len(chosen), len(skipped), len(test.files))
			}
		})
	}
}

func TestCheckNames(t *testing.T) {
	tests := map[string]struct {
		paths []string
		want  string
	}{
		"plain":          {paths: []string{"a", "b/c", "b/d e+%ü.txt", ".cache/x"}},
		"dots":           {paths: []string{"../x"}, want: "not a plain relative path"},
		"inner dots":     {paths: []string{"a/./b"}, want: "not a plain relative path"},
		"absolute":       {paths: []string{"/etc/x"}, want: "not a plain relative path"},
		"trailing slash": {paths: []string{"a/"}, want: "not a plain relative path"},
		"empty":          {paths: []string{""}, want: "not text"},
		"not UTF-8":      {paths: []string{"a\xff"}, want: "not text"},
		"NUL":            {paths: []string{"a\x00"}, want: "cannot show"},
		"bidi override":  {paths: []string{"a\u202etxt.nib"}, want: "cannot show"},
		"bidi isolate":   {paths: []string{"a\u2066b"}, want: "cannot show"},
		"line separator": {paths: []string{"a\u2028b"}, want: "cannot show"},
		"Arabic":         {paths: []string{"\u0646\u0645\u0648\u0630\u062c.json"}},
		"backslash":      {paths: []string{`a\b`}, want: "cannot show"},
		"twice":          {paths: []string{"a", "a"}, want: "twice"},
		"shadow":         {paths: []string{"a/b/c", "a"}, want: `"a" is a file, and a directory`},
		"manifest":       {paths: []string{record.ManifestName}, want: "reserved"},
		"nested is fine": {paths: []string{"sub/" + record.ManifestName}},
		"probe":          {paths: []string{record.ProbePrefix + "x"}, want: "reserved"},
		"too long":       {paths: []string{strings.Repeat("a", 1025)}, want: "longer than 1024"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := checkNames("", named(test.paths...))
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestHeader(t *testing.T) {
	file := func(text string, data int) []byte {
		return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), make([]byte, data)...)
	}
	tests := map[string]struct {
		data []byte
		want string
	}{
		"sound":          {data: file(`{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4)},
		"no tensors":     {data: file(`{}`, 0)},
		"truncated":      {data: file(`{"a":{"data_offsets":[0,4]}}`, 3), want: "describes 40 bytes, the file has 39"},
		"too long":       {data: file(`{"a":{"data_offsets":[0,4]}}`, 5), want: "describes 40 bytes, the file has 41"},
		"pointer":        {data: []byte("version https://git-lfs.github.com/spec/v1\n"), want: "git-lfs pointer"},
		"error page":     {data: []byte("<!DOCTYPE html><html></html>"), want: "no header length"},
		"empty":          {data: nil, want: "too short"},
		"not JSON":       {data: file(`{"a"`, 0), want: "not JSON"},
		"bad offsets":    {data: file(`{"a":{"data_offsets":[4,0]}}`, 4), want: "no valid data_offsets"},
		"negative":       {data: file(`{"a":{"data_offsets":[-1,4]}}`, 4), want: "no valid data_offsets"},
		"huge":           {data: file(`{"a":{"data_offsets":[0,18446744073709551615]}}`, 4), want: "no valid data_offsets"},
		"header cut off": {data: file(`{"a":{"data_offsets":[0,4]}}`, 0)[:20], want: "no header length"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, chunk := range []int{1, 7, 8, 9, 1 << 20} {
				var head header
				for rest := test.data; len(rest) > 0; rest = rest[min(chunk, len(rest)):] {
					head.write(rest[:min(chunk, len(rest))])
				}
				err := head.check(int64(len(test.data)))
				if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
					t.Errorf("in pieces of %d: got %v, want %q", chunk, err, test.want)
				}
			}
		})
	}
}

func TestMissingShards(t *testing.T) {
	synced := map[string]bool{"a.safetensors": true, "sub/b.safetensors": true}
	tests := map[string]struct {
		name, data string
		want       []string
		fails      bool
	}{
		"complete":       {name: "model.safetensors.index.json", data: `{"weight_map":{"x":"a.safetensors"}}`, want: []string{}},
		"below a folder": {name: "sub/model.safetensors.index.json", data: `{"weight_map":{"x":"b.safetensors"}}`, want: []string{}},
		"missing":        {name: "model.safetensors.index.json", data: `{"weight_map":{"x":"c","y":"b","z":"c"}}`, want: []string{"b", "c"}},
		"no weights":     {name: "x", data: `{}`, fails: true},
		"not JSON":       {name: "x", data: `<html>`, fails: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := missingShards(test.name, []byte(test.data), synced)
			if diff := cmp.Diff(test.want, got); diff != "" || (err != nil) != test.fails {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	const git = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
	sum, other := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	base64Of := func(digest string) string {
		raw, _ := hex.DecodeString(digest)
		return base64.StdEncoding.EncodeToString(raw)
	}
	all := record.StoreCapabilities{ReturnsSHA256: true}
	lfs := hub.File{Path: "a", Size: 5, SHA256: sum}
	small := hub.File{Path: "a", Size: 5, GitSHA1: git}
	composite := func(value string) *record.ManifestFile {
		return &record.ManifestFile{SHA256: sum, S3: &record.ManifestObject{ChecksumSHA256: value}}
	}
	tests := map[string]struct {
		file   hub.File
		object store.Object
		former *record.ManifestFile
		can    record.StoreCapabilities
		want   string
	}{
		"right":                         {file: lfs, can: all, object: store.Object{Size: 5, ChecksumSHA256: base64Of(sum), Metadata: map[string]string{"sha256": sum}}},
		"right, of parts":               {file: lfs, can: all, object: store.Object{Size: 5, ChecksumSHA256: "eA==-2", Metadata: map[string]string{"sha256": sum}}},
		"git file":                      {file: small, can: all, object: store.Object{Size: 5, ChecksumSHA256: base64Of(sum), Metadata: map[string]string{"sha256": sum, "git-sha1": git}}},
		"size":                          {file: lfs, can: all, object: store.Object{Size: 4, Metadata: map[string]string{"sha256": sum}}, want: "4 bytes"},
		"no metadata":                   {file: lfs, can: all, object: store.Object{Size: 5, ChecksumSHA256: base64Of(sum)}, want: "states no SHA-256"},
		"other digest":                  {file: lfs, can: all, object: store.Object{Size: 5, Metadata: map[string]string{"sha256": other}}, want: "another SHA-256"},
		"other blob":                    {file: small, can: all, object: store.Object{Size: 5, ChecksumSHA256: base64Of(sum), Metadata: map[string]string{"sha256": sum, "git-sha1": "00"}}, want: "another git blob"},
		"metadata lies":                 {file: lfs, can: all, object: store.Object{Size: 5, ChecksumSHA256: base64Of(other), Metadata: map[string]string{"sha256": sum}}, want: "store computed another"},
		"of the seed, no checksum":      {file: lfs, can: all, object: store.Object{Size: 5, Metadata: map[string]string{"sha256": sum}}, want: "no checksum"},
		"a store without checksums":     {file: lfs, object: store.Object{Size: 5, Metadata: map[string]string{"sha256": sum}}},
		"parts changed after manifest":  {file: lfs, can: all, former: composite("eA==-2"), object: store.Object{Size: 5, ChecksumSHA256: "eQ==-2", Metadata: map[string]string{"sha256": sum}}, want: "changed after"},
		"large git file, in manifest":   {file: small, can: all, former: composite("eA==-2"), object: store.Object{Size: 5, ChecksumSHA256: "eA==-2", Metadata: map[string]string{"git-sha1": git}}},
		"no digest to compare with":     {file: hub.File{Path: "a", Size: 5}, can: all, object: store.Object{Size: 5, ChecksumSHA256: base64Of(sum), Metadata: map[string]string{"sha256": sum}}, want: "no digest to compare"},
		"no digest, but in a manifest":  {file: hub.File{Path: "a", Size: 5}, can: all, former: composite(base64Of(sum)), object: store.Object{Size: 5, ChecksumSHA256: base64Of(sum), Metadata: map[string]string{"sha256": sum}}},
		"ETag alone proves nothing":     {file: lfs, can: all, object: store.Object{Size: 5, ETag: `"` + sum + `"`}, want: "states no SHA-256"},
		"metadata that is not a digest": {file: lfs, can: all, object: store.Object{Size: 5, Metadata: map[string]string{"sha256": "x"}}, want: "states no SHA-256"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, reason := judge(test.file, test.object, test.former, test.can)
			if (reason == "") != (test.want == "") || !strings.Contains(reason, test.want) {
				t.Errorf("got %q, want %q", reason, test.want)
			}
			if reason == "" && got != sum {
				t.Errorf("digest %q", got)
			}
		})
	}
}

func TestMemoryIsBounded(t *testing.T) {
	m := newMemory(10, 4)
	first, err := m.take(t.Context(), 4)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.take(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	// 10 bytes hold two buffers of 4, so a third has to wait.
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	if _, err := m.take(ctx, 1); err == nil {
		t.Error("a third buffer was given")
	}
	m.give(first[:2])
	again, err := m.take(t.Context(), 4)
	if err != nil || &again[0] != &first[0] {
		t.Errorf("the buffer was not used again: %v", err)
	}
}
