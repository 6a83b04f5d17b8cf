package rollout

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
	"github.com/kubectl-inference/kubectl-inference/test/golden"
)

const model = "s3://models/org/name/0123456789abcdef0123456789abcdef01234567"

type result struct {
	stdout, stderr string
	err            error
}

// run runs the command with kubeconfig, "" for none.
func run(t *testing.T, kubeconfig, stdin string, args ...string) result {
	t.Helper()
	if kubeconfig == "" {
		kubeconfig = filepath.Join(t.TempDir(), "none")
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	var out, errs bytes.Buffer
	factory := kube.NewFactory("test", nil)
	cmd := New(factory, term.New(strings.NewReader(stdin), &out, &errs, nil))
	factory.AddFlags(cmd.PersistentFlags())
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append([]string{"--cache-dir", t.TempDir()}, args...))
	err := cmd.ExecuteContext(t.Context())
	return result{out.String(), errs.String(), err}
}

func wantFailure(t *testing.T, got result, kind failure.Kind, message, hint string) {
	t.Helper()
	if got.err == nil || failure.KindOf(got.err) != kind || !strings.Contains(got.err.Error(), message) || !strings.Contains(failure.HintOf(got.err), hint) {
		t.Errorf("got %v (%d, hint %q), want %q (%d, hint %q)", got.err, failure.KindOf(got.err), failure.HintOf(got.err), message, kind, hint)
	}
	if got.stdout != "" {
		t.Errorf("printed %q", got.stdout)
	}
}

// What is refused before anybody is called: there is no cluster here.
func TestValidate(t *testing.T) {
	good := []string{"--model", model, "--engine-image", "example.test/vllm:1", "--dry-run", "--kind", "deployment"}
	tests := map[string]struct {
		args          []string
		message, hint string
	}{
		"no name":                {good, "give the predictor's NAME, and only that", "--help"},
		"two names":              {append([]string{"a", "b"}, good...), "give the predictor's NAME, and only that", "--help"},
		"name in capitals":       {append([]string{"Web"}, good...), `read NAME: "Web": `, ""},
		"name too long":          {append([]string{strings.Repeat("x", 64)}, good...), "read NAME: ", ""},
		"name begins with digit": {append([]string{"1b"}, good...), "read NAME: ", ""},
		"no model":               {[]string{"web", "--dry-run"}, "rollout web: no model given", "sync-model prints it"},
		"bucket only":            {[]string{"web", "--model", "s3://models/"}, `read --model: "s3://models" is not an S3 prefix`, "s3://BUCKET/PREFIX"},
		"other scheme":           {[]string{"web", "--model", "hf://org/name"}, "is not an S3 prefix", ""},
		"empty part":             {[]string{"web", "--model", "s3://models//a"}, "is not an S3 prefix", ""},
		"branch as revision":     {append([]string{"web", "--revision", "main"}, good...), `read --revision: "main" is not a commit`, "40 hexadecimal"},
		"kind":                   {[]string{"web", "--model", model, "--kind", "pod"}, `read --kind: "pod" is not known`, "auto, inferenceservice or deployment"},
		"kind and file":          {append([]string{"web", "-f", "x.yaml"}, good...), "with -f the file says what kind it is", "leave out --kind"},
		"verify":                 {append([]string{"web", "--verify", "deep"}, good...), `read --verify: "deep" is not known`, "fast or manifest"},
		"no image":               {[]string{"web", "--model", model}, "rollout web: no engine image given", "--engine-image"},
		"cpu":                    {append([]string{"web", "--cpu", "four"}, good...), `read --cpu: "four" is not a quantity`, "24Gi"},
		"memory":                 {append([]string{"web", "--memory", "24GB"}, good...), `read --memory: "24GB" is not a quantity`, "24Gi"},
		"negative gpus":          {append([]string{"web", "--gpus", "-1"}, good...), `read --gpus: "-1" is not a number of what a node has`, ""},
		"gpus":                   {append([]string{"web", "--gpus", "one"}, good...), `read --gpus: "one" is not a quantity`, ""},
		"no time":                {append([]string{"web", "--rollout-timeout", "0s"}, good...), "read --rollout-timeout: it must be above 0", ""},
		"endpoint":               {append([]string{"web", "--s3-endpoint", "minio:9000"}, good...), "read --s3-endpoint", "https://host:port"},
		"output":                 {append([]string{"web", "-o", "xml"}, good...), "xml", ""},
		"variable given twice":   {append([]string{"web", "--s3-secret", "keys", "--engine-env", "AWS_ACCESS_KEY_ID=a"}, good...), "read --engine-env: AWS_ACCESS_KEY_ID comes from --s3-secret", "leave out one"},
		"no job image":           {[]string{"web", "--model", model, "--engine-image", "x"}, "this build of the plugin has no default image", "--image"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			wantFailure(t, run(t, "", "", test.args...), failure.Usage, test.message, test.hint)
		})
	}
	// The table's common flags are good: what is missing is the cluster.
	if got := run(t, "", "", append([]string{"web"}, good...)...); strings.Contains(got.err.Error(), "read --") || failure.KindOf(got.err) == failure.Failed {
		t.Errorf("got %v", got.err)
	}
}

// made returns the objects as YAML, without a cluster: the kind is given.
func made(t *testing.T, o *options) string {
	t.Helper()
	_, objects, err := o.objects()
	if err != nil {
		t.Fatal(err)
	}
	var documents []string
	for _, object := range objects {
		data, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(data))
	}
	return strings.Join(documents, "---\n")
}

func settings() *options {
	o := &options{
		name: "web", namespace: "models", model: model, gpus: "2", cpu: "4", memory: "24Gi", engineImage: "example.test/vllm:1",
		engineArgs: []string{"--max-num-seqs=40"}, engineEnv: map[string]string{"VLLM_LOGGING_LEVEL": "DEBUG"}, account: "web", nodeSelector: map[string]string{"gpu": "l4"},
	}
	o.store.Endpoint, o.store.Region, o.store.Secret = "http://s3.models.svc:9000", "eu-central-1", "s3-keys"
	return o
}

func TestTemplates(t *testing.T) {
	minimal := func(kind string) *options {
		return &options{name: "web", namespace: "models", model: model, gpus: "1", engineImage: "example.test/vllm:1", kind: kind}
	}
	full := func(kind string) *options {
		o := settings()
		o.kind = kind
		return o
	}
	named := minimal(kindDeployment)
	named.engineArgs = []string{"--served-model-name=chat"}
	for name, o := range map[string]*options{
		"deployment": full(kindDeployment), "inferenceservice": full(kindInferenceService),
		"deployment-minimal": minimal(kindDeployment), "inferenceservice-minimal": minimal(kindInferenceService),
		"named-by-argument": named,
	} {
		t.Run(name, func(t *testing.T) {
			golden.Compare(t, name+".golden.yaml", made(t, o))
		})
	}
}

func TestEnvironment(t *testing.T) {
	o := settings()
	o.engineEnv = map[string]string{"AWS_ENDPOINT_URL": "http://near", "A": "b"}
	if diff := cmp.Diff(map[string]string{"AWS_ENDPOINT_URL": "http://near", "A": "b", "AWS_REGION": "eu-central-1"}, o.environment()); diff != "" {
		t.Error(diff)
	}
}

func ownFile(t *testing.T, text string) *options {
	t.Helper()
	file := filepath.Join(t.TempDir(), "predictor.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return &options{name: "deepseek-r1-14b", namespace: "models", model: model, kind: kindAuto, file: file}
}

// The seed's own object: one argument changes, and nothing else but the
// namespace and the deployment mode's spelling, which KServe rewrites.
func TestOwnObject(t *testing.T) {
	data, err := os.ReadFile("../../manifests/examples/seed/inferenceservice.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seed := string(data)
	o := ownFile(t, seed+"---\n# nothing here\n---\napiVersion: v1\nkind: Service\nmetadata: {name: other, namespace: models}\n")
	want, err := yaml.YAMLToJSON([]byte(strings.NewReplacer("s3://models/deepseek-14b-awq", model, "deploymentMode: RawDeployment", "deploymentMode: Standard", "  name: deepseek-r1-14b\n  labels", "  name: deepseek-r1-14b\n  namespace: models\n  labels").Replace(seed)))
	if err != nil {
		t.Fatal(err)
	}
	kind, objects, err := o.objects()
	if err != nil || kind != "InferenceService" || len(objects) != 2 {
		t.Fatalf("got %s, %d objects, %v", kind, len(objects), err)
	}
	var wanted map[string]any
	if err := json.Unmarshal(want, &wanted); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(objects[0].Object)
	if err != nil {
		t.Fatal(err)
	}
	var read map[string]any
	if err := json.Unmarshal(got, &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, read); diff != "" {
		t.Error(diff)
	}
	plan, err := o.plan(kind, objects)
	if err != nil {
		t.Fatal(err)
	}
	if plan.ServedModel != "/models" || plan.URL != "http://deepseek-r1-14b-predictor.models.svc" || plan.Deployment != "" || plan.Workload["component"] != "predictor" {
		t.Errorf("got %+v", plan)
	}
	// The user's flags reach it, the defaults of a template do not.
	o.served, o.gpus = "chat", "2"
	if text := made(t, o); !strings.Contains(text, "- --served-model-name\n      - chat\n") || strings.Count(text, `nvidia.com/gpu: "2"`) != 2 {
		t.Errorf("got %s", text)
	}
}

func TestOwnObjectRefused(t *testing.T) {
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {containers: [{name: e, args: [s3://a/b]}]}}}\n"
	tests := map[string]struct{ text, message, hint string }{
		"another name":        {deployment, "its Deployment is called web, not deepseek-r1-14b", "name that stands in the file"},
		"two other names":     {deployment + "---\n" + strings.Replace(deployment, "web", "api", 1), "its Deployment is called web, its Deployment is called api, not", ""},
		"no model":            {strings.Replace(deployment, "s3://a/b", "/mnt/models", 1), "no InferenceService or Deployment with a model reference", "--model"},
		"another kind":        {strings.NewReplacer("Deployment", "StatefulSet", "web", "deepseek-r1-14b").Replace(deployment), "no InferenceService or Deployment with a model reference", ""},
		"model by storage":    {"kind: InferenceService\nmetadata: {name: deepseek-r1-14b}\nspec: {predictor: {model: {storageUri: s3://a/b}}}", "no InferenceService or Deployment with a model reference", "containers"},
		"another namespace":   {strings.Replace(deployment, "{name: web}", "{name: deepseek-r1-14b, namespace: prod}", 1), "its Deployment deepseek-r1-14b is of namespace prod, not models", "-n prod"},
		"number without \"\"": {strings.NewReplacer("web", "deepseek-r1-14b", "s3://a/b", "s3://a/b, --port, 8000").Replace(deployment), "args[2] is 8000, not a string", ""},
		"empty":               {"# nothing\n", "no InferenceService or Deployment with a model reference", ""},
		"not YAML":            {"{: [", "read ", ""},
		"a list":              {"- a\n- b\n", "read ", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := ownFile(t, test.text).objects()
			wantFailure(t, result{err: err}, failure.Usage, test.message, test.hint)
		})
	}
	o := ownFile(t, "")
	o.file = "/nowhere/predictor.yaml"
	_, _, err := o.objects()
	wantFailure(t, result{err: err}, failure.Usage, "read --filename: ", "")
}

func TestRender(t *testing.T) {
	seconds := func(value float64) *float64 { return &value }
	start := record.ColdStart{Name: "web", ModelID: "org/name", Revision: "abc", ServedModel: "chat", Replicas: []record.ReplicaStart{
		{Pod: "web-1", Node: "gpu-1", QueuedSeconds: seconds(1), PreparedSeconds: seconds(9), LoadedSeconds: seconds(30), TotalSeconds: 40},
		{Pod: "web-2", Node: "gpu-2", LoadedSeconds: seconds(0), TotalSeconds: 0},
	}}
	var out bytes.Buffer
	if err := render(&out, start); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, line := range []string{
		"[.---------==============================]", ". queued 1.0 s   - prepared 9.0 s   = loaded 30.0 s", "cold start of", "  []\n  = loaded 0.0 s\n",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("%q is missing in\n%s", line, text)
		}
	}
	out.Reset()
	if err := render(&out, record.ColdStart{Name: "web"}); err != nil || !strings.Contains(out.String(), "no replica was started, so no cold start was measured") {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

func TestShow(t *testing.T) {
	var out bytes.Buffer
	o := &options{streams: term.New(nil, &out, &out, nil)}
	data, err := record.Encode(record.ColdStart{TypeMeta: record.Meta(record.KindColdStart), Name: "web", ModelID: "org/name", Revision: "abc", ServedModel: "chat"})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.show(record.Event{Result: data}); err != nil || !strings.HasPrefix(out.String(), "web serves org/name at revision abc as \"chat\"\n") {
		t.Errorf("got %q, %v", out.String(), err)
	}
	wantFailure(t, result{err: o.show(record.Event{Result: []byte(`{"kind":"BenchReport"}`)})}, failure.Usage, "read the rollout's result", "")
}
