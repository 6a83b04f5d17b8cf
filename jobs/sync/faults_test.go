package sync_test

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/hub"
)

const shard = "model-00001-of-00002.safetensors"

// Faults that pass: the sync succeeds, and every byte is right.
func TestFaultsThatPass(t *testing.T) {
	tests := map[string]struct {
		faults []hub.Fault
		// retried: the result tells that requests were repeated.
		retried bool
	}{
		"huggingface_hub#3643 wrong bytes once":          {faults: []hub.Fault{{Kind: hub.FaultCorrupt, Path: shard, Times: 1, After: 1000}}},
		"wrong bytes in the last part once":              {faults: []hub.Fault{{Kind: hub.FaultCorrupt, Path: shard, Times: 2, After: 33 << 19}}},
		"wrong bytes of a git file once":                 {faults: []hub.Fault{{Kind: hub.FaultCorrupt, Path: "config.json", Times: 1}}},
		"cut stream":                                     {faults: []hub.Fault{{Kind: hub.FaultCut, Path: shard, Times: 3, After: 1 << 20}}, retried: true},
		"cut stream of a git file":                       {faults: []hub.Fault{{Kind: hub.FaultCut, Path: "tokenizer.json", Times: 2, After: 100}}, retried: true},
		"more cuts than attempts, each further":          {faults: []hub.Fault{{Kind: hub.FaultCut, Path: shard, Times: 12, After: 2 << 20}}, retried: true},
		"huggingface_hub#3778 200 in place of 206":       {faults: []hub.Fault{{Kind: hub.FaultFull, Path: shard, Times: 3}}},
		"huggingface_hub#3778 after a cut":               {faults: []hub.Fault{{Kind: hub.FaultCut, Path: shard, Times: 2, After: 5 << 20}, {Kind: hub.FaultFull, Path: shard, Times: 4}}},
		"huggingface_hub#3269 gzip against our word":     {faults: []hub.Fault{{Kind: hub.FaultGzip}}},
		"transformers#45797 URL expired":                 {faults: []hub.Fault{{Kind: hub.FaultExpired, Times: 3}}, retried: true},
		"OneTrainer#1409 429 from the files":             {faults: []hub.Fault{{Kind: hub.FaultStatus, Status: 429, On: hub.OnResolve, Times: 5, RetryAfter: 7}}, retried: true},
		"429 from the listing":                           {faults: []hub.Fault{{Kind: hub.FaultStatus, Status: 429, On: hub.OnAPI, Times: 2}}, retried: true},
		"503 everywhere":                                 {faults: []hub.Fault{{Kind: hub.FaultStatus, Status: 503, Times: 2}}, retried: true},
		"502 from the CDN":                               {faults: []hub.Fault{{Kind: hub.FaultStatus, Status: 502, On: hub.OnCDN, Times: 3}}, retried: true},
		"hf-mirror-site#65 a mirror without its headers": {faults: []hub.Fault{{Kind: hub.FaultMirror}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			for _, fault := range test.faults {
				w.hub.Inject(fault)
			}
			result := w.mustRun()
			if test.retried && result.Retries == 0 {
				t.Error("the result tells of no retry")
			}
		})
	}
}

// Faults that stay: no manifest, no object of wrong bytes, no open upload; and
// once the fault is gone the next run completes.
func TestFaultsThatStay(t *testing.T) {
	tests := map[string]struct {
		fault hub.Fault
		kind  failure.Kind
		text  string
	}{
		"huggingface_hub#3643 wrong bytes":     {fault: hub.Fault{Kind: hub.FaultCorrupt, Path: shard, After: 33 << 19}, kind: failure.Failed, text: "its sha256 is"},
		"wrong bytes of a git file":            {fault: hub.Fault{Kind: hub.FaultCorrupt, Path: "generation_config.json", After: 3}, kind: failure.Failed, text: "its git-sha1 is"},
		"cut before the first byte":            {fault: hub.Fault{Kind: hub.FaultCut, Path: shard}, kind: failure.Unreachable, text: "4 attempts"},
		"URLs that never work (xet-core#238)":  {fault: hub.Fault{Kind: hub.FaultExpired, Path: shard}, kind: failure.Unreachable, text: "refused the URL"},
		"the Hub is down":                      {fault: hub.Fault{Kind: hub.FaultStatus, Status: 503, On: hub.OnAPI}, kind: failure.Unreachable, text: "status 503"},
		"rate limited for ever":                {fault: hub.Fault{Kind: hub.FaultStatus, Status: 429, On: hub.OnResolve}, kind: failure.Unreachable, text: "status 429"},
		"the endpoint is no Hub (hf-hub#163)":  {fault: hub.Fault{Kind: hub.FaultStatus, Status: 404, On: hub.OnAPI}, kind: failure.Usage, text: "does not answer as a Hub does"},
		"a status that a Hub never gives":      {fault: hub.Fault{Kind: hub.FaultStatus, Status: 418, On: hub.OnAPI}, kind: failure.Usage, text: "check --hub-endpoint"},
		"a listing that redirects to nothing":  {fault: hub.Fault{Kind: hub.FaultStatus, Status: 304, On: hub.OnAPI}, kind: failure.Usage, text: "does not answer as a Hub does"},
		"forbidden without the Hub's own code": {fault: hub.Fault{Kind: hub.FaultStatus, Status: 403, On: hub.OnResolve}, kind: failure.Denied, text: "may not read it"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.hub.Inject(test.fault)
			_, err := w.run()
			w.checkFailed(err, test.kind, test.text)
			if key := w.prefix() + "/" + test.fault.Path; test.fault.Path != "" && slices.Contains(w.store.Keys(t, bucket), key) {
				t.Errorf("%s became an object", key)
			}
			w.hub.Clear()
			w.mustRun()
		})
	}
}

// The Hub's own window is waited for as it says, not by chance.
func TestRateLimitIsWaitedFor(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) {
		o.Models[0].Bytes = 1 << 20
		o.Limits = hub.Limits{Resolvers: 3, Window: 5 * time.Minute}
	})
	// One at a time: waits at the same time would each move the tests' clock.
	w.plan.Parallel = 1
	result := w.mustRun()
	if result.RateLimitSeconds < 299 || result.RateLimitSeconds > 5*302 {
		t.Errorf("waited %.0f s for %d requests at 3 in 300 s", result.RateLimitSeconds, w.hub.Stats().ResolveRequests)
	}
	if limited := w.hub.Stats().Limited; limited > 8 {
		t.Errorf("%d requests ran into the limit", limited)
	}
}

// What the user has to mend gets one line that says so.
func TestDenied(t *testing.T) {
	const token = "hf_token"
	gated := func(o *hub.Options) {
		o.Models[0].Gated = true
		o.Tokens = []hub.Token{{Value: token}, {Value: token + "_accepted", Accepted: true}}
	}
	private := func(o *hub.Options) {
		o.Models[0].Private = true
		o.Tokens = []hub.Token{{Value: token}, {Value: token + "_member", Member: true}}
	}
	tests := map[string]struct {
		hub    func(*hub.Options)
		change func(*world)
		kind   failure.Kind
		text   string
	}{
		"gated, no token":                          {hub: gated, kind: failure.Denied, text: "set HF_TOKEN"},
		"huggingface_hub#1119 gated, not accepted": {hub: gated, change: func(w *world) { w.deps.Token = token }, kind: failure.Denied, text: "hint: accept the licence at http://"},
		"gated, accepted":                          {hub: gated, change: func(w *world) { w.deps.Token = token + "_accepted" }},
		"private, no token":                        {hub: private, kind: failure.NotFound, text: "it does not exist, or it needs a token"},
		"private, not a member":                    {hub: private, change: func(w *world) { w.deps.Token = token }, kind: failure.NotFound, text: "or it is private"},
		"private, member":                          {hub: private, change: func(w *world) { w.deps.Token = token + "_member" }},
		"bad token for a public model":             {change: func(w *world) { w.deps.Token = "hf_expired" }, kind: failure.Denied, text: "set HF_TOKEN to a valid token"},
		"missing model":                            {change: func(w *world) { w.plan.Repo = "lab/other" }, kind: failure.NotFound, text: "lab/other"},
		"missing revision":                         {change: func(w *world) { w.plan.Revision = "v9" }, kind: failure.NotFound, text: `no revision "v9"`},
		"taken down":                               {hub: func(o *hub.Options) { o.Models[0].Disabled = true }, kind: failure.Denied, text: "access is disabled"},
		"no bucket":                                {change: func(w *world) { w.plan.Destination = "s3://other/llm" }, kind: failure.NotFound, text: "check the name other"},
		"store down":                               {change: func(w *world) { w.plan.S3Endpoint = "http://127.0.0.1:1"; w.deps.Attempts = 1 }, kind: failure.Unreachable, text: "check the S3 endpoint"},
		"Hub down":                                 {change: func(w *world) { w.plan.HubEndpoint = "http://127.0.0.1:1" }, kind: failure.Unreachable, text: "reach the Hub at http://127.0.0.1:1"},
		"nothing left":                             {change: func(w *world) { w.plan.Include = []string{"*.onnx"} }, kind: failure.Usage, text: "none of the"},
		"sglang#32279 a shard excluded":            {change: func(w *world) { w.plan.Exclude = []string{shard} }, kind: failure.Usage, text: "names " + shard},
		"budget below one part":                    {change: func(w *world) { w.plan.MemoryBytes = 1 << 10 }, kind: failure.Usage, text: "memory budget"},
		"CoSER#3 an index with a shard that is not there": {hub: func(o *hub.Options) { o.Models[0].Omit = []string{shard} }, kind: failure.Usage, text: "names " + shard},
		"a git-lfs pointer in place of weights": {hub: func(o *hub.Options) {
			o.Models[0].Files = map[string][]byte{"x.safetensors": []byte("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n")}
		}, kind: failure.Usage, text: "git-lfs pointer"},
		"mountpoint-s3#725 a file that is a directory too": {hub: func(o *hub.Options) {
			o.Models[0].Files = map[string][]byte{"a": []byte("1"), "a/b": []byte("2")}
		}, kind: failure.Usage, text: `"a" is a file`},
		"a file of our own name": {hub: func(o *hub.Options) {
			o.Models[0].Files = map[string][]byte{record.ManifestName: []byte("{}")}
		}, kind: failure.Usage, text: "reserved"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(o *hub.Options) {
				o.Models[0].Bytes = 1 << 20
				if test.hub != nil {
					test.hub(o)
				}
			})
			if test.change != nil {
				test.change(w)
			}
			if test.text == "" {
				w.mustRun()
				return
			}
			_, err := w.run()
			w.checkFailed(err, test.kind, test.text)
		})
	}
}

// Objects that were lost or replaced after the manifest are put right, and only
// they are read again.
func TestHeal(t *testing.T) {
	key := func(w *world) *string { return new(w.prefix() + "/" + shard) }
	tests := map[string]func(*world){
		"deleted": func(w *world) {
			if _, err := w.store.Client().DeleteObject(w.t.Context(), &s3.DeleteObjectInput{Bucket: new(bucket), Key: key(w)}); err != nil {
				w.t.Fatal(err)
			}
		},
		"truncated": func(w *world) { w.replace(*key(w), w.read(*key(w))[:100], nil) },
		"replaced, same size": func(w *world) {
			data := w.read(*key(w))
			data[5000] ^= 1
			w.replace(*key(w), data, nil)
		},
		"replaced, same size and metadata": func(w *world) {
			data := w.read(*key(w))
			data[5000] ^= 1
			w.replace(*key(w), data, map[string]string{"sha256": w.served(shard).SHA256})
		},
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.mustRun()
			damage(w)
			w.hub.ResetStats()
			result := w.mustRun()
			if want := w.served(shard).Size; result.AlreadyComplete || result.Uploaded.Files != 1 || result.DownloadedBytes != want {
				t.Errorf("uploaded %+v, downloaded %d, want one file of %d", result.Uploaded, result.DownloadedBytes, want)
			}
		})
	}
}

// A run that ended after its last file and before the manifest costs nothing.
func TestManifestLost(t *testing.T) {
	w := newWorld(t, nil)
	w.mustRun()
	manifest := w.prefix() + "/" + record.ManifestName
	if _, err := w.store.Client().DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: new(bucket), Key: &manifest}); err != nil {
		t.Fatal(err)
	}
	result := w.mustRun()
	if result.AlreadyComplete || result.DownloadedBytes != 0 || result.Uploaded.Files != 0 {
		t.Errorf("uploaded %+v, downloaded %d", result.Uploaded, result.DownloadedBytes)
	}
}
