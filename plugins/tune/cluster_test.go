package tune

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

// One server for all tests, on which the custom kinds are installed once.
var (
	shared    apiserver.Shared
	installed sync.Once
)

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// cluster is a namespace of the real API server, with KEDA's and KServe's kinds
// and nobody behind them: the tests play KEDA and KServe themselves.
type cluster struct {
	t         *testing.T
	server    *apiserver.Server
	client    dynamic.Interface
	namespace string
}

// start makes a namespace of the test's own.
func start(t *testing.T, name string) *cluster {
	t.Helper()
	server := shared.Start(t)
	installed.Do(func() { installKinds(t, server) })
	server.Kubectl(t, "", "create", "namespace", name)
	client, err := dynamic.NewForConfig(server.Config(apiserver.Admin))
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{t: t, server: server, client: client, namespace: name}
}

// installKinds installs the custom kinds.
func installKinds(t *testing.T, server *apiserver.Server) {
	t.Helper()
	crds := kedaCRDs(t)
	kserve, err := filepath.Glob("../../test/lab/kserve/crds/*.yaml")
	if err != nil || len(kserve) == 0 {
		t.Fatalf("no KServe kinds: %v", err)
	}
	args := []string{"apply", "--server-side"}
	for _, file := range append(kserve, crds) {
		args = append(args, "-f", file)
	}
	server.Kubectl(t, "", args...)
	server.Kubectl(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd/scaledobjects.keda.sh",
		"crd/inferenceservices.serving.kserve.io", "crd/llminferenceservices.serving.kserve.io")
}

// kedaCRDs returns KEDA's own definition of a ScaledObject, from its module. The
// product does not depend on it, the lab's server does.
func kedaCRDs(t *testing.T) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "github.com/kedacore/keda/v2")
	command.Dir = "../../test/lab/servers/keda"
	var stderr bytes.Buffer
	command.Stderr = &stderr
	data, err := command.Output()
	var module struct{ Dir, Error string }
	if err == nil {
		err = json.Unmarshal(data, &module)
	}
	if err != nil || module.Dir == "" {
		t.Fatalf("find KEDA's module: %v %s %s", err, module.Error, stderr.String())
	}
	return filepath.Join(module.Dir, "config", "crd", "bases", "keda.sh_scaledobjects.yaml")
}

func (c *cluster) resource(kind string) dynamic.ResourceInterface {
	kinds := map[string]schema.GroupVersionResource{
		"so":      {Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"},
		"isvc":    {Group: "serving.kserve.io", Version: "v1beta1", Resource: "inferenceservices"},
		"llmisvc": {Group: "serving.kserve.io", Version: "v1alpha2", Resource: "llminferenceservices"},
		"hpa":     {Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
	}
	return c.client.Resource(kinds[kind]).Namespace(c.namespace)
}

// create creates an object from YAML and returns it as the server has it.
func (c *cluster) create(kind, text string) *unstructured.Unstructured {
	c.t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		c.t.Fatal(err)
	}
	created, err := c.resource(kind).Create(c.t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return created
}

func (c *cluster) get(kind, name string) *unstructured.Unstructured {
	c.t.Helper()
	object, err := c.resource(kind).Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return object
}

// spec is an object's spec, for comparing.
func (c *cluster) spec(kind, name string) any { return c.get(kind, name).Object["spec"] }

// patch sends a JSON patch, as another person would. It may be called from any
// goroutine.
func (c *cluster) patch(ctx context.Context, kind, name, patch string) error {
	_, err := c.resource(kind).Patch(ctx, name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// threshold returns that of a ScaledObject's trigger.
func threshold(object *unstructured.Unstructured, index int) string {
	triggers, _, _ := unstructured.NestedSlice(object.Object, "spec", "triggers")
	trigger, _ := triggers[index].(map[string]any)
	text, _, _ := unstructured.NestedString(trigger, "metadata", "threshold")
	return text
}

// result is what one run of the command printed.
type result struct {
	stdout, stderr string
	err            error
}

// tune runs the command as user.
func (c *cluster) tune(user string, args ...string) result {
	c.t.Helper()
	return c.tuneWith(user, "", args...)
}

// tuneWith runs the command with a standard input.
func (c *cluster) tuneWith(user, stdin string, args ...string) result {
	c.t.Helper()
	return c.tuneAt(&options{pace: pace{look: 20 * time.Millisecond, settled: 100 * time.Millisecond}}, user, stdin, args...)
}

// tuneAt runs the command at a pace.
func (c *cluster) tuneAt(o *options, user, stdin string, args ...string) result {
	c.t.Helper()
	return c.tuneIn(c.t.Context(), o, user, stdin, args...)
}

func (c *cluster) tuneIn(ctx context.Context, o *options, user, stdin string, args ...string) result {
	c.t.Helper()
	var out, errs bytes.Buffer
	o.factory = kube.NewFactory("test", nil)
	o.streams = term.New(strings.NewReader(stdin), &out, &errs, nil)
	cmd := quiet(command(o), o.factory)
	cmd.SetArgs(append([]string{"--kubeconfig", c.server.Kubeconfig(user), "--cache-dir", c.t.TempDir(), "-n", c.namespace}, args...))
	err := cmd.ExecuteContext(ctx)
	return result{out.String(), errs.String(), err}
}

func quiet(cmd *cobra.Command, factory *kube.Factory) *cobra.Command {
	factory.AddFlags(cmd.PersistentFlags())
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	return cmd
}

// carryDown plays KServe and KEDA once: when InferenceService chat has the
// target on its second metric, the ScaledObject and the HPA get theirs.
func (c *cluster) carryDown(ctx context.Context, want any, threshold, target string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	watch, err := c.resource("isvc").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer watch.Stop()
	for {
		object, err := c.resource("isvc").Get(ctx, "chat", metav1.GetOptions{})
		if err != nil {
			return err
		}
		metrics, _, _ := unstructured.NestedSlice(object.Object, "spec", "predictor", "autoScaling", "metrics")
		external, _ := metrics[1].(map[string]any)
		if value, _, _ := unstructured.NestedFieldNoCopy(external, "external", "target", "value"); value == want {
			break
		}
		select {
		case <-watch.ResultChan():
		case <-ctx.Done():
			return fmt.Errorf("wait for target %v: %w", want, ctx.Err())
		}
	}
	if err := c.patch(ctx, "so", "r1", `[{"op":"replace","path":"/spec/triggers/0/metadata/threshold","value":"`+threshold+`"}]`); err != nil {
		return err
	}
	return c.patch(ctx, "hpa", "keda-hpa-r1", `[{"op":"replace","path":"/spec/metrics/0/external/target/averageValue","value":"`+target+`"}]`)
}
