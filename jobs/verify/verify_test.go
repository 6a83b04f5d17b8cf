package verify_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/signing"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
	"github.com/kubectl-inference/kubectl-inference/jobs/sync"
	"github.com/kubectl-inference/kubectl-inference/jobs/verify"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/hub"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/hub/hubtest"
	"github.com/kubectl-inference/kubectl-inference/test/s3server"
)

// world is a delivered model of two shards of two parts each, and small files.
type world struct {
	t      *testing.T
	store  *s3server.Server
	bucket *store.Bucket
	prefix string
	plan   record.VerifyPlan
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server := s3server.Start(t)
	server.Bucket(t, "models")
	fake := hubtest.Start(t, hub.Options{Models: []hub.Model{{Name: "lab/tiny", Bytes: 34 << 20}}})
	result, err := sync.Run(t.Context(), record.SyncPlan{
		TypeMeta: record.Meta(record.KindSyncPlan), Repo: "lab/tiny", Revision: "main", HubEndpoint: fake.URL, Destination: "s3://models/llm", S3Endpoint: server.URL,
	}, sync.Deps{Credentials: server.Credentials()})
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := store.Open(t.Context(), store.Config{Bucket: "models", Endpoint: server.URL, Credentials: server.Credentials()})
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, store: server, bucket: bucket, prefix: strings.TrimPrefix(result.Location, "s3://models/"),
		plan: record.VerifyPlan{TypeMeta: record.Meta(record.KindVerifyPlan), Location: result.Location, S3Endpoint: server.URL, Mode: record.VerifyFast}}
}

func (w *world) run(mode string) (record.ModelVerification, error) {
	w.plan.Mode = mode
	return verify.Run(w.t.Context(), w.plan, verify.Deps{Credentials: w.store.Credentials(), Attempts: 2})
}

func (w *world) mustRun(mode string) record.ModelVerification {
	w.t.Helper()
	result, err := w.run(mode)
	if err != nil {
		w.t.Fatalf("%v\n%s", err, failure.Text(err))
	}
	return result
}

func (w *world) key(name string) string { return w.prefix + "/" + name }

func (w *world) put(name string, data []byte, metadata map[string]string) {
	w.t.Helper()
	// This server keeps the metadata of an object that is replaced.
	if err := w.bucket.Delete(w.t.Context(), w.key(name)); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.store.Client().PutObject(w.t.Context(), &s3.PutObjectInput{Bucket: new("models"), Key: new(w.key(name)), Body: bytes.NewReader(data), Metadata: metadata}); err != nil {
		w.t.Fatal(err)
	}
}

// file is where the server keeps an object, for damage behind its back.
func (w *world) file(name string) string {
	return filepath.Join(w.store.Data, "models", w.prefix, name)
}

func (w *world) manifest() record.Manifest {
	w.t.Helper()
	data, err := os.ReadFile(w.file(record.ManifestName))
	if err != nil {
		w.t.Fatal(err)
	}
	manifest, err := record.ParseManifest(data)
	if err != nil {
		w.t.Fatal(err)
	}
	return manifest
}

const shard = "model-00001-of-00002.safetensors"

func TestSound(t *testing.T) {
	w := newWorld(t)
	manifest := w.manifest()
	for mode, read := range map[string]int64{record.VerifyFast: 0, record.VerifyFull: manifest.TotalSize} {
		got := w.mustRun(mode)
		all := record.FileCount{Files: manifest.FileCount, Bytes: manifest.TotalSize}
		if !got.Matches || got.BytesRead != read || got.Proved != all || got.Listed != all || got.ProblemCount != 0 || verify.Error(got) != nil {
			t.Errorf("%s: %+v", mode, got)
		}
		if got.Revision != manifest.Revision || got.RootDigest != manifest.RootDigest || len(got.ManifestSHA256) != 64 || got.Signature != (record.Signature{State: "none"}) || len(got.Warnings) > 0 {
			t.Errorf("%s: %+v", mode, got)
		}
	}
}

// TestDamage does one kind of damage after another; each is seen, named, and
// nothing else is. fast and full say which mode must see it.
func TestDamage(t *testing.T) {
	w := newWorld(t)
	manifest := w.manifest()
	config, shardLine := line(t, manifest, "config.json"), line(t, manifest, shard)
	original := w.read("config.json")
	wrong := bytes.Repeat([]byte("x"), int(config.Size))
	delete := func(name string) func() {
		return func() {
			if err := w.bucket.Delete(t.Context(), w.key(name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, test := range []struct {
		name       string
		damage     func()
		heal       func()
		fast, full []record.ModelProblem
	}{
		{"deleted", delete("config.json"), nil,
			problems("config.json", "missing", fmt.Sprintf("%d bytes", config.Size), "nothing"), nil},
		{"truncated", func() { w.put("config.json", original[:10], map[string]string{"sha256": config.SHA256}) }, nil,
			problems("config.json", "size", fmt.Sprint(config.Size), "10"), nil},
		{"wrong bytes of the right length, written by another program", func() { w.put("config.json", wrong, nil) }, nil,
			nil, problems("config.json", "content", config.SHA256, hexOf(wrong))},
		{"wrong bytes of the right length, with the right metadata", func() { w.put("config.json", wrong, map[string]string{"sha256": config.SHA256}) }, nil,
			nil, problems("config.json", "content", config.SHA256, hexOf(wrong))},
		{"changed metadata", func() { w.put("config.json", original, map[string]string{"sha256": hexOf(wrong)}) }, nil,
			problems("config.json", "metadata", config.SHA256, hexOf(wrong)), nil},
		{"the same bytes written anew by another program", func() { w.put("config.json", original, nil) }, nil,
			problems("config.json", "checksum", config.S3.ChecksumSHA256, "none"), []record.ModelProblem{}},
		{"a file too many", func() { w.put("consolidated.safetensors", []byte("x"), nil) }, delete("consolidated.safetensors"),
			problems("consolidated.safetensors", "extra", "nothing", "1 bytes"), nil},
		{"what a killed sync left of its own", func() { w.put(record.CheckpointFolder+"ab12", []byte("x"), nil) }, delete(record.CheckpointFolder + "ab12"),
			[]record.ModelProblem{}, []record.ModelProblem{}},
		{"a name of two lines", func() { w.put("model\r\n.bin", []byte("x"), nil) }, delete("model\r\n.bin"),
			problems("model\r\n.bin", "extra", "nothing", "1 bytes"), nil},
		{"one shard of several parts put in one", func() {
			w.put(shard, bytes.Repeat([]byte("y"), int(shardLine.Size)), map[string]string{"sha256": shardLine.SHA256})
		}, nil,
			nil, problems(shard, "content", shardLine.SHA256, hexOf(bytes.Repeat([]byte("y"), int(shardLine.Size))))},
	} {
		t.Run(test.name, func(t *testing.T) {
			name := "config.json"
			if strings.Contains(test.name, "shard") {
				name = shard
			}
			backup := w.read(name)
			test.damage()
			defer func() {
				w.restore(name, backup, line(t, manifest, name))
				if test.heal != nil {
					test.heal()
				}
				if got := w.mustRun(record.VerifyFast); !got.Matches {
					t.Errorf("not healed: %+v", got.Problems)
				}
			}()
			full := test.full
			if full == nil {
				full = test.fast
			}
			for mode, want := range map[string][]record.ModelProblem{record.VerifyFast: test.fast, record.VerifyFull: full} {
				got := w.mustRun(mode)
				if want == nil {
					// What another program wrote has no SHA-256 in the store; that shows.
					if got.Matches || got.ProblemCount != 1 {
						t.Errorf("%s: not seen: %+v", mode, got)
					}
					continue
				}
				if diff := cmp.Diff(want, got.Problems); diff != "" || got.Matches != (len(want) == 0) {
					t.Errorf("%s: matches %t (-want +got):\n%s", mode, got.Matches, diff)
				}
				err := verify.Error(got)
				if len(want) == 0 {
					continue
				}
				if failure.KindOf(err) != failure.Differs || failure.HintOf(err) == "" || strings.ContainsAny(strings.TrimSuffix(failure.Text(err), "\n"), "\r\x1b") {
					t.Errorf("%s: %q", mode, failure.Text(err))
				}
			}
		})
	}
}

// TestDecay: damage on the store's own disk leaves its checksums as they were,
// so that only a full verification sees it.
func TestDecay(t *testing.T) {
	w := newWorld(t)
	data, err := os.ReadFile(w.file(shard))
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(w.file(shard), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := w.mustRun(record.VerifyFast); !got.Matches {
		t.Errorf("fast reads no data, and says %+v", got.Problems)
	}
	want := problems(shard, "content", line(t, w.manifest(), shard).SHA256, hexOf(data))
	if diff := cmp.Diff(want, w.mustRun(record.VerifyFull).Problems); diff != "" {
		t.Errorf("full (-want +got):\n%s", diff)
	}
}

func TestManifests(t *testing.T) {
	w := newWorld(t)
	good := w.manifest()
	write := func(change func(*record.Manifest)) []byte {
		manifest := good
		manifest.Files = append([]record.ManifestFile{}, good.Files...)
		change(&manifest)
		data, err := record.Encode(manifest)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	resealed := func(change func(*record.Manifest)) []byte {
		return write(func(m *record.Manifest) {
			change(m)
			if err := m.Seal(); err != nil {
				t.Fatal(err)
			}
		})
	}
	for name, test := range map[string]struct {
		manifest []byte
		kind     failure.Kind
		want     string
	}{
		"absent":                       {nil, failure.NotFound, "it has no _MANIFEST.json, so it is not complete"},
		"not JSON":                     {[]byte("<Error>"), failure.Differs, "read manifest: not a JSON document: invalid character '<' looking for beginning of value"},
		"another program's":            {[]byte(`{"version":3,"files":["a"]}`), failure.Differs, "read manifest: it has no schema_version, so no sync wrote it"},
		"of a later release":           {[]byte(`{"schema_version":9}`), failure.Usage, "read manifest: schema_version 9 is not known, this build reads 1 and 2"},
		"a wrong root digest":          {write(func(m *record.Manifest) { m.RootDigest = strings.Repeat("0", 64) }), failure.Differs, "read manifest: root_digest " + strings.Repeat("0", 64) + " does not follow from its files"},
		"a digest changed":             {write(func(m *record.Manifest) { m.Files[len(m.Files)-1].SHA256 = strings.Repeat("0", 64) }), failure.Differs, "read manifest: root_digest " + good.RootDigest + " does not follow from its files"},
		"a wrong count":                {write(func(m *record.Manifest) { m.FileCount++ }), failure.Differs, fmt.Sprintf("read manifest: it promises %d files and %d bytes, and lists %d and %d", good.FileCount+1, good.TotalSize, good.FileCount, good.TotalSize)},
		"sizes beyond counting":        {write(func(m *record.Manifest) { m.Files[0].Size, m.Files[1].Size = 1<<62, 1<<62 }), failure.Differs, "read manifest: the sizes that it lists are beyond counting"},
		"a path out of the prefix":     {resealed(func(m *record.Manifest) { m.Files[0].Path = "../other/config.json" }), failure.Differs, `read manifest: "../other/config.json" is not a path below the prefix`},
		"a path from the root":         {resealed(func(m *record.Manifest) { m.Files[0].Path = "/etc/passwd" }), failure.Differs, `read manifest: "/etc/passwd" is not a path below the prefix`},
		"an empty path":                {resealed(func(m *record.Manifest) { m.Files[0].Path = "" }), failure.Differs, `read manifest: "" is not a path below the prefix`},
		"a path that moves the cursor": {resealed(func(m *record.Manifest) { m.Files[0].Path = "\x1b[2Jx" }), failure.Differs, `read manifest: "\x1b[2Jx" is not a path below the prefix`},
		"itself":                       {resealed(func(m *record.Manifest) { m.Files[0].Path = record.ManifestName }), failure.Differs, `read manifest: "_MANIFEST.json" is not a path below the prefix`},
		"huge":                         {bytes.Repeat([]byte(" "), 64<<20+1), failure.Failed, "read " + w.plan.Location + "/_MANIFEST.json: it has more than 67108864 bytes, which no sync writes"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.manifest == nil {
				if err := w.bucket.Delete(t.Context(), w.key(record.ManifestName)); err != nil {
					t.Fatal(err)
				}
			} else {
				w.put(record.ManifestName, test.manifest, nil)
			}
			_, err := w.run(record.VerifyFast)
			want := "verify " + w.plan.Location + ": " + test.want
			if strings.HasPrefix(test.want, "read s3") {
				want = test.want
			}
			if err == nil || err.Error() != want || failure.KindOf(err) != test.kind {
				t.Errorf("got kind %d, %v\nwant %s", failure.KindOf(err), err, want)
			}
		})
	}
	t.Run("a manifest that was changed and sealed again", func(t *testing.T) {
		w.put(record.ManifestName, resealed(func(m *record.Manifest) {}), map[string]string{"sha256": strings.Repeat("0", 64)})
		if got := w.mustRun(record.VerifyFast); got.ProblemCount != 1 || got.Problems[0].Path != record.ManifestName || got.Problems[0].Kind != "metadata" {
			t.Errorf("%+v", got.Problems)
		}
	})
	t.Run("of another revision than its prefix", func(t *testing.T) {
		other := strings.Repeat("b", 40)
		w.put(record.ManifestName, write(func(m *record.Manifest) { m.Revision = other }), nil)
		want := problems(record.ManifestName, "content", "revision "+good.Revision+", which its prefix is named for", "revision "+other)
		if diff := cmp.Diff(want, w.mustRun(record.VerifyFast).Problems); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("the seed's, of schema 1", func(t *testing.T) {
		files := []map[string]any{}
		for _, file := range good.Files {
			files = append(files, map[string]any{"path": file.Path, "size": file.Size, "sha256": file.SHA256})
		}
		data, _ := json.Marshal(map[string]any{"schema_version": 1, "model_id": good.ModelID, "revision": good.Revision, "file_count": good.FileCount, "total_size": good.TotalSize, "files": files})
		w.put(record.ManifestName, data, nil)
		got := w.mustRun(record.VerifyFast)
		if !got.Matches || len(got.Warnings) != 2 || got.Proved.Files != good.FileCount-2 {
			t.Errorf("%+v", got)
		}
		if got := w.mustRun(record.VerifyFull); !got.Matches || got.Proved.Files != good.FileCount {
			t.Errorf("%+v", got)
		}
	})
}

func TestSignature(t *testing.T) {
	w := newWorld(t)
	private, public := keys(t)
	_, otherPublic := keys(t)
	signer, err := signing.ParseSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := signing.Sign(w.manifest(), signer)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(what, state string, want []record.ModelProblem) {
		t.Helper()
		got := w.mustRun(record.VerifyFast)
		if diff := cmp.Diff(want, got.Problems); diff != "" || got.Signature.State != state || got.Matches != (len(want) == 0) {
			t.Errorf("%s: signature %s, matches %t (-want +got):\n%s", what, got.Signature.State, got.Matches, diff)
		}
		if len(want) > 0 && !strings.Contains(failure.HintOf(verify.Error(got)), "do not serve it") {
			t.Errorf("%s: hint %q", what, failure.HintOf(verify.Error(got)))
		}
	}
	w.plan.Key = string(public)
	expect("unsigned", record.SignatureInvalid, problems("model.sig", "signature", "a signature is expected", "there is none"))
	w.put(record.SignatureName, bundle, nil)
	expect("signed", record.SignatureValid, []record.ModelProblem{})
	w.plan.Key = ""
	expect("signed, no key", record.SignatureUnchecked, []record.ModelProblem{})
	w.plan.Key = string(otherPublic)
	got := w.mustRun(record.VerifyFast)
	if got.Signature.State != record.SignatureInvalid || got.ProblemCount != 1 || !strings.Contains(got.Problems[0].Found, "not with the given key") {
		t.Errorf("another key: %+v", got)
	}
	w.plan.Key = string(public)
	w.put(record.SignatureName, []byte("\x1b[31m not a bundle"), nil)
	expect("not a bundle", record.SignatureInvalid, problems("model.sig", "signature", "a signature by the given key is expected", "it is not a Sigstore bundle in JSON"))

	// The manifest names the key; a signature with another one was put in its place.
	plain := w.read(record.ManifestName)
	named := w.manifest()
	named.Signature = &record.ManifestSignature{Path: record.SignatureName, KeyID: strings.Repeat("a", 64)}
	data, err := record.Encode(named)
	if err != nil {
		t.Fatal(err)
	}
	w.put(record.ManifestName, data, nil)
	w.put(record.SignatureName, bundle, nil)
	w.plan.Key = ""
	expect("another signature", record.SignatureInvalid, problems("model.sig", "signature", "the manifest names a signature with key "+strings.Repeat("a", 12), "it names key "+signer.ID[:12]))
	w.plan.Key = string(public)
	w.put(record.ManifestName, plain, nil)

	// A file that git keeps for itself is added to the manifest: said, for it is
	// not signed.
	w.put(".github/added", []byte("x"), map[string]string{"sha256": hexOf([]byte("x"))})
	added := w.manifest()
	added.Files = append(added.Files, record.ManifestFile{Path: ".github/added", Size: 1, SHA256: hexOf([]byte("x"))})
	if err := added.Seal(); err != nil {
		t.Fatal(err)
	}
	if data, err = record.Encode(added); err != nil {
		t.Fatal(err)
	}
	w.put(record.ManifestName, data, nil)
	if got := w.mustRun(record.VerifyFast); got.Signature.State != record.SignatureValid || !strings.Contains(strings.Join(got.Warnings, "\n"), "does not cover") || !strings.Contains(strings.Join(got.Warnings, "\n"), ".github/added") {
		t.Errorf("an unsigned file: %+v", got)
	}
	w.put(record.ManifestName, plain, nil)
	if err := w.bucket.Delete(t.Context(), w.key(".github/added")); err != nil {
		t.Fatal(err)
	}

	// Somebody who can write the bucket replaces a file and its manifest.
	w.put(record.SignatureName, bundle, nil)
	manifest := w.manifest()
	evil := bytes.Repeat([]byte("e"), int(line(t, manifest, "config.json").Size))
	for i := range manifest.Files {
		if manifest.Files[i].Path == "config.json" {
			manifest.Files[i].SHA256, manifest.Files[i].S3 = hexOf(evil), nil
		}
	}
	signed := line(t, w.manifest(), "config.json").SHA256
	if err := manifest.Seal(); err != nil {
		t.Fatal(err)
	}
	if data, err = record.Encode(manifest); err != nil {
		t.Fatal(err)
	}
	w.put("config.json", evil, map[string]string{"sha256": hexOf(evil)})
	w.put(record.ManifestName, data, nil)
	expect("forged", record.SignatureInvalid, problems("config.json", "signature", "signed as "+signed, hexOf(evil)))
}

// TestMany: more objects than a page of a listing has.
func TestMany(t *testing.T) {
	server := s3server.Start(t)
	server.Bucket(t, "models")
	const files = 10_000
	manifest := record.Manifest{ModelID: "lab/many", Revision: strings.Repeat("a", 40)}
	directory := filepath.Join(server.Data, "models", "many")
	for i := range files {
		name := fmt.Sprintf("%03d/%05d", i%100, i)
		path := filepath.Join(directory, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		manifest.Files = append(manifest.Files, record.ManifestFile{Path: name, SHA256: hexOf(nil)})
	}
	if err := manifest.Seal(); err != nil {
		t.Fatal(err)
	}
	data, err := record.Encode(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(directory, record.ManifestName), data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"000/00000", "099/09999"} {
		if err := os.Remove(filepath.Join(directory, name)); err != nil {
			t.Fatal(err)
		}
	}
	plan := record.VerifyPlan{Location: "s3://models/many", S3Endpoint: server.URL, Mode: record.VerifyFull}
	got, err := verify.Run(t.Context(), plan, verify.Deps{Credentials: server.Credentials()})
	if err != nil {
		t.Fatal(err)
	}
	if got.Listed.Files != files || got.ProblemCount != 2 || got.Problems[0].Path != "000/00000" || got.Problems[1].Path != "099/09999" {
		t.Errorf("%d files, %d problems, %+v", got.Listed.Files, got.ProblemCount, got.Problems[:min(3, len(got.Problems))])
	}
}

func TestRefuses(t *testing.T) {
	w := newWorld(t)
	ended, stop := context.WithCancel(t.Context())
	stop()
	for name, test := range map[string]struct {
		change func(*record.VerifyPlan)
		kind   failure.Kind
	}{
		"no location":    {func(p *record.VerifyPlan) { p.Location = "" }, failure.Usage},
		"a path":         {func(p *record.VerifyPlan) { p.Location = "/models/llm" }, failure.Usage},
		"out of bucket":  {func(p *record.VerifyPlan) { p.Location = "s3://models/../x" }, failure.Usage},
		"a mode":         {func(p *record.VerifyPlan) { p.Mode = "slow" }, failure.Usage},
		"many at a time": {func(p *record.VerifyPlan) { p.Parallel = 1 << 20 }, failure.Usage},
		"a key":          {func(p *record.VerifyPlan) { p.Key = "x" }, failure.Usage},
		"an endpoint":    {func(p *record.VerifyPlan) { p.S3Endpoint = "s3" }, failure.Usage},
		"no bucket":      {func(p *record.VerifyPlan) { p.Location = "s3://gone/llm" }, failure.NotFound},
		"no such place":  {func(p *record.VerifyPlan) { p.Location = "s3://models/ll" }, failure.NotFound},
		"no store":       {func(p *record.VerifyPlan) { p.S3Endpoint = "http://127.0.0.1:1" }, failure.Unreachable},
	} {
		plan := w.plan
		test.change(&plan)
		_, err := verify.Run(t.Context(), plan, verify.Deps{Credentials: w.store.Credentials(), Attempts: 1})
		if failure.KindOf(err) != test.kind || failure.HintOf(err) == "" {
			t.Errorf("%s: kind %d, %v, hint %q", name, failure.KindOf(err), err, failure.HintOf(err))
		}
	}
	if _, err := verify.Run(ended, w.plan, verify.Deps{Credentials: w.store.Credentials()}); failure.KindOf(err) != failure.Interrupted {
		t.Errorf("an ended context: %v", err)
	}
}

func keys(t *testing.T) (private, public []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	open, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: open})
}
