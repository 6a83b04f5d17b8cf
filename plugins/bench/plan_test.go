package bench

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/jobrun"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
	"github.com/kubectl-inference/kubectl-inference/test/golden"
)

// result is what one command line did.
type result struct {
	stdout, stderr string
	err            error
}

func run(t *testing.T, environ []string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	factory := kube.NewFactory("test", rest.NoWarnings{})
	root := &cobra.Command{Use: "kubectl-inference", SilenceErrors: true, SilenceUsage: true}
	factory.AddFlags(root.PersistentFlags())
	root.AddCommand(New(factory, term.New(nil, &out, &errs, environ), "v1"))
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(append([]string{"bench"}, args...))
	err := root.ExecuteContext(t.Context())
	return result{out.String(), errs.String(), err}
}

func TestDryRun(t *testing.T) {
	url := []string{"--url", "http://gateway.example:8000", "--dry-run", "--name", "nightly"}
	for name, args := range map[string][]string{
		"plan-open.txt": {"plan", "--url", "http://gateway.example:8000", "--name", "open", "--rate", "0.5,2", "--arrival", "gamma", "--burstiness", "0.5", "--prompt-tokens", "lognormal:1024:512", "--output-tokens", "64,uniform:16:128"},
		"plan-stages.yaml": {"plan", "--url", "https://gateway.example", "--name", "stages", "--stages", "1:60s,1-8:2m", "--max-in-flight", "64", "--http", "2", "--header", "x-tenant: research", "--ca-from", "configmap/root-ca",
			"--shared-prefix-tokens", "512", "--shared-prefix-groups", "3", "-o", "yaml"},
		"plan-sessions.yaml": {"plan", "--url", "http://gateway.example:8000", "--name", "sessions", "--concurrency", "20", "--turns", "4", "--think", "5s", "--requests", "100", "-o", "yaml"},
		"plan-trace.yaml":    {"plan", "--url", "http://gateway.example:8000", "--name", "trace", "--trace", "testdata/trace.csv", "--trace-speed", "2", "-o", "yaml"},
		"plan-file.txt":      {"plan", "--url", "http://other.example", "-f", "testdata/bench.yaml"},
		"plan-file.yaml":     {"plan", "-f", "testdata/bench.yaml", "-o", "yaml", "--seed", "9"},
		"plan-url.txt":       append(url, "--concurrency", "1,5", "--prompt-tokens", "1024,64"),
		"plan-url.yaml":      append(url, "-o", "yaml", "--concurrency", "4", "--slo", "p99_e2e=30s", "--slo", "p95_ttft=2", "--api", "chat", "--model", "m", "--prometheus", "http://prometheus:9090", "--scrape-interval", "5s", "--api-key-secret", "keys", "--insecure-skip-target-tls-verify"),
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, nil, args...)
			if got.err != nil {
				t.Fatal(got.err)
			}
			if strings.HasSuffix(name, ".yaml") {
				var plan record.BenchPlan
				if err := yaml.Unmarshal([]byte(got.stdout), &plan); err != nil {
					t.Fatal(err)
				}
				if err := plan.Validate(); err != nil {
					t.Error(err)
				}
			}
			golden.Compare(t, name, got.stdout)
		})
	}
}

func TestRefuses(t *testing.T) {
	url := []string{"--url", "http://a", "--dry-run"}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"nothing":             {nil, "error: bench: there is nothing to measure\nhint: give a target such as isvc/NAME, or --url\n"},
		"three words":         {[]string{"a", "b", "c"}, "error: bench: one target is measured at a time, got 3 words\n"},
		"--local alone":       {[]string{"isvc/a", "--local"}, "error: bench: --local cannot reach a Service of the cluster\nhint: give --url, such as http://localhost:8000 with a port-forward\n"},
		"--records of a Job":  {append(url, "--records", "x"), "error: read --records: it works with --local only\nhint: the records of a Job are not kept yet; add --local\n"},
		"no scrape interval":  {append(url, "--scrape-interval", "0s"), "error: read --scrape-interval and --scrape-lag: a time is not above 0\n"},
		"a bad name":          {append(url, "--name", "Nightly Run"), ""},
		"a bad objective":     {append(url, "--slo", "p99_e2e"), "error: read --slo: \"p99_e2e\" is not an objective\nhint: write PERCENTILE_LATENCY=LIMIT, such as p99_e2e=30s; the latencies are e2e, ttft, tpot, max_stall\n"},
		"no URL":              {[]string{"--url", "localhost:8000", "--dry-run"}, ""},
		"a case twice":        {append(url, "--concurrency", "1,1"), "error: read bench plan: case \"1024-128-c1\" is there twice\n"},
		"no load":             {append(url, "--concurrency", "0"), "error: read bench plan: case \"1024-128-c0\": concurrency must be 1 or more\nhint: give the number of requests in flight, such as --concurrency 1,5,10; or a rate, for an open loop\n"},
		"an unknown protocol": {append(url, "--api", "grpc"), "error: read bench plan: target.api \"grpc\" is neither completions nor chat\n"},
		"a load in words":     {append(url, "--concurrency", "x"), "error: read --concurrency: \"x\" is not a whole number\nhint: give whole numbers joined by commas, such as 1,5,10\n"},
		"a huge load":         {append(url, "--concurrency", "1000000"), "error: read bench plan: case \"1024-128-c1000000\": concurrency 1000000 is more than 20000\nhint: one process has a connection for each request in flight; start several runs instead\n"},
		"another scheme":      {[]string{"--url", "ftp://a", "--dry-run"}, "error: read bench plan: target.url: \"ftp://a\" is not an http or https URL\nhint: write the API's base as http://HOST:PORT or https://HOST\n"},
		"no time":             {append(url, "--duration", "0s"), "error: read bench plan: duration_seconds must be above 0\nhint: a window of 60s or more gives percentiles worth having\n"},
		"a type alone":        {[]string{"isvc/", "--dry-run"}, "error: bench: \"isvc/\" names no target\nhint: give TYPE/NAME, such as isvc/NAME or svc/NAME\n"},
		"both loops":          {append(url, "--concurrency", "1", "--rate", "2"), "error: read load: concurrency and a rate exclude one another\nhint: a closed loop keeps requests in flight, an open one has a rate: measure them as two cases\n"},
		"a rate in words":     {append(url, "--rate", "fast"), "error: read --rate: \"fast\" is not a number\nhint: give requests a second, such as 0.5,1,2\n"},
		"too slow a rate":     {append(url, "--rate", "0.005"), "error: read bench plan: case \"1024-128-poisson-r0.005\": only 0.6 requests are due in its 120 s\nhint: raise the rate or lengthen the duration\n"},
		"arrival alone":       {append(url, "--arrival", "constant"), "error: read --arrival: it is of an open loop\nhint: give --rate, --stages or --trace too\n"},
		"no trace there":      {append(url, "--trace", "testdata/none.csv"), "error: read trace: testdata/none.csv: no such file or directory\n"},
		"a bad length":        {append(url, "--prompt-tokens", "normal:5"), ""},
		"a secret header":     {append(url, "--header", "Authorization: Bearer x"), "error: read header Authorization: it looks like a credential\nhint: plans are stored and shown: put an API key into a Secret and name it with --api-key-secret; with --local, set OPENAI_API_KEY\n"},
		"a header of no name": {append(url, "--header", "sk-abcdef"), "error: read --header: there is no colon after a name\nhint: write it as \"NAME: VALUE\", such as --header \"x-tenant: research\"\n"},
		"HTTP/2 in the clear": {append(url, "--http", "2"), "error: read bench plan: target.http 2 needs an https URL\nhint: for an http URL it is h2c\n"},
		"HTTP/3":              {append(url, "--http", "3"), "error: read bench plan: target.http \"3\" is none of 1.1, 2, h2c\n"},
		"no certificate":      {append(url, "--ca-file", "plan_test.go"), "error: read CA certificates: there is none\nhint: give a file of certificates that begin with -----BEGIN CERTIFICATE-----\n"},
		"a CA of nothing":     {append(url, "--ca-from", "pod/a"), "error: read --ca-from: \"pod/a\" names no ConfigMap and no Secret\nhint: write configmap/NAME or secret/NAME, with /KEY where the key is not ca.crt\n"},
		"a Secret of nothing": {append(url, "--api-key-secret", "a/"), "error: read --api-key-secret: \"a/\" names no Secret\nhint: write NAME, or NAME/KEY where the key is not OPENAI_API_KEY\n"},
		"file and load":       {append(url, "-f", "testdata/bench.yaml", "--rate", "1"), "error: read --rate: the cases come from the file testdata/bench.yaml\nhint: write it into the file, or leave the file out\n"},
		"an unknown field":    {append(url, "-f", "testdata/unknown.yaml"), "error: read bench file testdata/unknown.yaml: error unmarshaling JSON: while decoding JSON: json: unknown field \"concurency\"\nhint: `kubectl inference bench --help` shows an example of the file\n"},
		"no file":             {append(url, "-f", "testdata/none.yaml"), "error: read bench file: testdata/none.yaml: no such file or directory\nhint: `kubectl inference bench --help` shows an example of the file\n"},
		"plan, to start":      {[]string{"plan", "--url", "http://a", "--dry-run=false"}, ""},
		"no image":            {[]string{"--url", "http://a"}, "error: start job: this build of the plugin has no default image\nhint: give --image, or set KUBECTL_INFERENCE_IMAGE; with --local no image is needed\n"},
		"get of nothing":      {[]string{"get"}, "error: bench get: give the name of one run\nhint: `kubectl inference bench list` lists the runs\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, nil, test.args...)
			if failure.KindOf(got.err) != failure.Usage || got.stdout != "" {
				t.Fatalf("error %v, standard output %q", got.err, got.stdout)
			}
			if diff := cmp.Diff(test.want, failure.Text(got.err)); test.want != "" && diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAPIKey: a key of this environment is used here, and only named.
func TestAPIKey(t *testing.T) {
	environ := []string{keyAPI + "=sk-secret"}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"here":             {[]string{"--local"}, keyAPI},
		"in a Job":         {nil, ""},
		"in a Job, Secret": {[]string{"--api-key-secret", "keys"}, keyAPI},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, environ, append([]string{"--url", "http://a", "--dry-run", "-o", "json"}, test.args...)...)
			var plan record.BenchPlan
			if err := record.Decode([]byte(got.stdout), record.KindBenchPlan, &plan); err != nil || got.err != nil {
				t.Fatal(got.err, err)
			}
			if plan.Target.APIKeyEnv != test.want || strings.Contains(got.stdout, "sk-secret") {
				t.Errorf("the plan names %q: %s", plan.Target.APIKeyEnv, got.stdout)
			}
		})
	}
}

func TestRunName(t *testing.T) {
	now := time.Date(2026, 7, 1, 23, 4, 5, 0, time.FixedZone("", 3600))
	for name, test := range map[string]struct {
		options options
		want    string
	}{
		"given":       {options{name: "nightly", target: []string{"isvc/a"}}, "nightly"},
		"TYPE/NAME":   {options{target: []string{"isvc/deepseek-r1-14b"}}, "deepseek-r1-14b-20260701-220405"},
		"TYPE NAME":   {options{target: []string{"isvc", "web"}}, "web-20260701-220405"},
		"a URL":       {options{url: "http://a"}, "url-20260701-220405"},
		"a long name": {options{target: []string{"isvc/" + strings.Repeat("a", 29) + "-b"}}, strings.Repeat("a", 29) + "-20260701-220405"},
		"odd letters": {options{target: []string{"svc/My.Service_2"}}, "my-service-2-20260701-220405"},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.options.runName(now)
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if problems := validation.IsDNS1123Label("inference-bench-" + got); len(problems) > 0 {
				t.Error(problems)
			}
		})
	}
}

func TestPlaceOf(t *testing.T) {
	service := map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": int64(80)}, map[string]any{"port": int64(9000)}}}}
	for name, test := range map[string]struct {
		kind, name string
		more       map[string]any
		want       place
		workload   string
		refusal    string
	}{
		"InferenceService":    {"InferenceService", "r1.14b", nil, place{url: "http://r1.14b-predictor.llm.svc", namespace: "llm", podRegex: `r1\.14b-predictor-.*`}, "r1.14b-predictor", ""},
		"LLMInferenceService": {"LLMInferenceService", "r1", nil, place{url: "http://r1-kserve-workload-svc.llm.svc:8000", namespace: "llm", podRegex: "r1-kserve-[^-]+-[^-]+"}, "r1-kserve", ""},
		"Deployment":          {"Deployment", "web", nil, place{url: "http://web.llm.svc", namespace: "llm", podRegex: "web-[^-]+-[^-]+"}, "web", ""},
		"Service":             {"Service", "web-predictor", service, place{url: "http://web-predictor.llm.svc:80", namespace: "llm", podRegex: "web-.*"}, "web-predictor", ""},
		"Service, no port":    {"Service", "web", nil, place{}, "", "find service web: it has no port"},
		"ConfigMap":           {"ConfigMap", "web", nil, place{}, "", "measure ConfigMap web: it does not answer requests"},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{}}
			for key, value := range test.more {
				object.Object[key] = value
			}
			object.SetKind(test.kind)
			object.SetName(test.name)
			object.SetNamespace("llm")
			at, workload, err := placeOf(object)
			if at != test.want || workload != test.workload {
				t.Errorf("%+v of %s, want %+v of %s", at, workload, test.want, test.workload)
			}
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != test.refusal {
				t.Errorf("error %q, want %q", text, test.refusal)
			}
		})
	}
}

func TestShort(t *testing.T) {
	for value, want := range map[float64]string{
		0: "0.0ms", 0.0084: "8.4ms", 0.00996: "10ms", 0.048: "48ms", 0.9994: "999ms", 0.9996: "1.00s", 1: "1.00s", 9.994: "9.99s", 9.996: "10.0s", 35.456: "35.5s", 99.96: "100s",
	} {
		if got := short(&value); got != want {
			t.Errorf("%v: got %s, want %s", value, got, want)
		}
	}
	if short(nil) != unknown {
		t.Error("an unknown latency is a number")
	}
}

// What the pod gets from the cluster: a key and certificates by name.
func TestEnvironment(t *testing.T) {
	for name, test := range map[string]struct {
		options options
		want    jobrun.Spec
	}{
		"nothing":              {options{}, jobrun.Spec{}},
		"a Secret":             {options{apiSecret: "keys"}, jobrun.Spec{SecretEnv: []jobrun.SecretEnv{{Name: keyAPI, Secret: "keys", Key: keyAPI}}}},
		"a Secret and its key": {options{apiSecret: "keys/llm"}, jobrun.Spec{SecretEnv: []jobrun.SecretEnv{{Name: keyAPI, Secret: "keys", Key: "llm"}}}},
		"a CA in a ConfigMap":  {options{caFrom: "configmap/root-ca"}, jobrun.Spec{ConfigEnv: []jobrun.ConfigEnv{{Name: envCA, ConfigMap: "root-ca", Key: keyCA}}}},
		"a CA in a Secret":     {options{caFrom: "secret/tls/bundle.pem"}, jobrun.Spec{SecretEnv: []jobrun.SecretEnv{{Name: envCA, Secret: "tls", Key: "bundle.pem"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			var spec jobrun.Spec
			test.options.environment(&spec)
			if diff := cmp.Diff(test.want, spec); diff != "" {
				t.Error(diff)
			}
		})
	}
}
