package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// refusal is a forbidden error with the API server's own words.
func refusal(group, resource, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden, Code: 403, Message: message, Details: &metav1.StatusDetails{Group: group, Kind: resource}}}
}

func TestExplain(t *testing.T) {
	const busy = "the API server is there but busy: try again, or raise --request-timeout"
	pods := schema.GroupResource{Resource: "pods"}
	for name, test := range map[string]struct {
		err        error
		kind       failure.Kind
		text, hint string
	}{
		"no login": {apierrors.NewUnauthorized("expired"), failure.Denied, "get x: expired", "log in to the cluster again; `kubectl auth whoami` shows who the API server thinks you are"},
		"forbidden": {refusal("", "secrets", `secrets "s" is forbidden: User "eve" cannot get resource "secrets" in API group "" in the namespace "llm"`), failure.Denied,
			`get x: secrets "s" is forbidden: User "eve" cannot get resource "secrets" in API group "" in the namespace "llm"`, "ask for the permission; `kubectl auth can-i get secrets -n llm` says when you have it"},
		"forbidden in a group": {refusal("keda.sh", "scaledobjects", `scaledobjects.keda.sh is forbidden: User "eve" cannot list resource "scaledobjects" in API group "keda.sh" at the cluster scope`), failure.Denied,
			`get x: scaledobjects.keda.sh is forbidden: User "eve" cannot list resource "scaledobjects" in API group "keda.sh" at the cluster scope`, "ask for the permission; `kubectl auth can-i list scaledobjects.keda.sh` says when you have it"},
		"forbidden below an object": {refusal("", "pods", `pods "p" is forbidden: User "eve" cannot get resource "pods/log" in API group "" in the namespace "a"`), failure.Denied,
			`get x: pods "p" is forbidden: User "eve" cannot get resource "pods/log" in API group "" in the namespace "a"`, "ask for the permission; `kubectl auth can-i get pods --subresource=log -n a` says when you have it"},
		"forbidden without details": {&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden, Message: "no"}}, failure.Denied, "get x: no", "ask for the permission, or use another --context"},
		"absent":                    {apierrors.NewNotFound(pods, "p"), failure.NotFound, `get x: pods "p" not found`, "`kubectl get pods -A` lists what there is; -n chooses the namespace"},
		"absent in a group":         {apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"}, "d"), failure.NotFound, `get x: deployments.apps "d" not found`, "`kubectl get deployments.apps -A` lists what there is; -n chooses the namespace"},
		"no KEDA": {&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Code: 404, Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{Group: "keda.sh", Kind: "scaledobjects"}}},
			failure.NotFound, "get x: the server could not find the requested resource", "KEDA is not installed in this cluster: https://keda.sh/docs/latest/deploy"},
		"no such kind":     {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "serving.kserve.io", Kind: "InferenceService"}, SearchedVersions: []string{"v1beta1"}}, failure.NotFound, `get x: no matches for kind "InferenceService" in version "serving.kserve.io/v1beta1"`, "KServe is not installed in this cluster: https://kserve.github.io/website"},
		"no such resource": {fmt.Errorf("map: %w", &meta.NoResourceMatchError{PartialResource: schema.GroupVersionResource{Group: "keda.sh", Resource: "x"}}), failure.NotFound, `get x: map: no matches for keda.sh/, Resource=x`, "KEDA is not installed in this cluster: https://keda.sh/docs/latest/deploy"},
		"another group":    {&meta.NoResourceMatchError{PartialResource: schema.GroupVersionResource{Group: "a.b", Resource: "x"}}, failure.NotFound, "get x: no matches for a.b/, Resource=x", ""},
		"busy":             {apierrors.NewTooManyRequests("slow down", 1), failure.Unreachable, "get x: slow down", busy},
		"not ready":        {apierrors.NewServiceUnavailable("starting"), failure.Unreachable, "get x: starting", busy},
		"its own timeout":  {apierrors.NewTimeoutError("too slow", 1), failure.Unreachable, "get x: Timeout: too slow", busy},
		"no answer": {&url.Error{Op: "Get", URL: "https://10.0.0.1:6443/api/v1/pods", Err: &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}}, failure.Unreachable,
			"get x: no answer from 10.0.0.1:6443: dial tcp: connection refused", "check that the cluster runs and that --context and --kubeconfig name the right one: `kubectl cluster-info`"},
		"stopped":                    {&url.Error{Op: "Get", URL: "https://a/", Err: context.Canceled}, failure.Interrupted, `get x: Get "https://a/": context canceled`, ""},
		"anything else":              {errors.New("odd"), failure.Failed, "get x: odd", ""},
		"a failure stays what it is": {failure.New(failure.Differs, "look", "not equal"), failure.Differs, "get x: not equal", "look"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Explain(test.err, "get %s", "x")
			if diff := cmp.Diff([]any{test.kind, test.text, test.hint}, []any{failure.KindOf(err), err.Error(), failure.HintOf(err)}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !errors.Is(err, test.err) && failure.KindOf(test.err) == failure.Failed && test.kind != failure.Unreachable {
				t.Error("the cause is lost")
			}
		})
	}
	if Explain(nil, "get x") != nil {
		t.Error("no error is explained")
	}
}

// TestExplainRequestTimeout: a server that accepts and never answers.
func TestExplainRequestTimeout(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	client := &http.Client{Timeout: time.Millisecond}
	_, err := client.Get(server.URL)
	if explained := Explain(err, "get x"); failure.KindOf(explained) != failure.Unreachable {
		t.Errorf("kind %d: %v", failure.KindOf(explained), explained)
	}
}

func TestCauses(t *testing.T) {
	cause := metav1.StatusCause{Field: "spec.replicas", Message: "must be positive"}
	err := fmt.Errorf("apply: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{cause}}}})
	if diff := cmp.Diff([]metav1.StatusCause{cause}, Causes(err)); diff != "" {
		t.Error(diff)
	}
	if Causes(errors.New("x")) != nil || Causes(&apierrors.StatusError{}) != nil {
		t.Error("causes of nothing")
	}
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// factoryWith is a Factory with the kubeconfig flags of a command line.
func factoryWith(t *testing.T, args ...string) *Factory {
	t.Helper()
	f := NewFactory("v1", nil)
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f
}

const (
	work = `{apiVersion: v1, kind: Config, current-context: work,
contexts: [{name: work, context: {cluster: one, user: me, namespace: team}}, {name: plain, context: {cluster: two, user: me}}],
clusters: [{name: one, cluster: {server: "https://one.example"}}], users: [{name: me, user: {token: t}}]}`
	home = `{apiVersion: v1, kind: Config, current-context: home,
contexts: [{name: home, context: {cluster: two, user: me}}], clusters: [{name: two, cluster: {server: "https://two.example"}}]}`
)

func TestNamespaceAndContext(t *testing.T) {
	dir := t.TempDir()
	first, second := write(t, dir+"/first", work), write(t, dir+"/second", home)
	both := first + string(os.PathListSeparator) + second + string(os.PathListSeparator) + dir + "/absent"
	for name, test := range map[string]struct {
		kubeconfig      string
		args            []string
		namespace, host string
	}{
		"of the context":                {first, nil, "team", "https://one.example"},
		"-n":                            {first, []string{"-n", "other"}, "other", "https://one.example"},
		"none in the context":           {second, nil, "default", "https://two.example"},
		"several files, the first wins": {both, nil, "team", "https://one.example"},
		"a context of the second":       {both, []string{"--context", "home"}, "default", "https://two.example"},
		"cluster and user of two files": {both, []string{"--context", "plain"}, "default", "https://two.example"},
		"--kubeconfig is stronger":      {first, []string{"--kubeconfig", second}, "default", "https://two.example"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", test.kubeconfig)
			f := factoryWith(t, test.args...)
			namespace, err := f.Namespace()
			if err != nil || namespace != test.namespace {
				t.Errorf("namespace %q, error %v", namespace, err)
			}
			config, err := f.RESTConfig()
			if err != nil {
				t.Fatal(err)
			}
			if config.Host != test.host || config.UserAgent != "kubectl-inference/v1" || config.QPS != requestsPerSecond {
				t.Errorf("config %s, %s, %v a second", config.Host, config.UserAgent, config.QPS)
			}
			config.Host = "changed"
			if again, _ := f.RESTConfig(); again.Host != test.host {
				t.Error("two callers share one configuration")
			}
		})
	}
}

func TestBrokenKubeconfig(t *testing.T) {
	path := write(t, t.TempDir()+"/config", "not: [a kubeconfig")
	for name, args := range map[string][]string{"not YAML": {"--kubeconfig", path}, "no such context": {"--kubeconfig", write(t, t.TempDir()+"/w", work), "--context", "gone"}} {
		t.Run(name, func(t *testing.T) {
			f := factoryWith(t, args...)
			_, err := f.RESTConfig()
			if failure.KindOf(err) != failure.Usage || !strings.HasPrefix(err.Error(), "read kubeconfig: ") || failure.HintOf(err) == "" {
				t.Errorf("error %v", err)
			}
			for what, get := range map[string]func() error{
				"clientset": func() error { _, err := f.Clientset(); return err },
				"dynamic":   func() error { _, err := f.Dynamic(); return err },
			} {
				if err := get(); failure.KindOf(err) != failure.Usage {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

// TestServerVersionWithoutAServer says what is wrong, and for how long is not
// the point.
func TestServerVersionWithoutAServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	t.Setenv("HOME", t.TempDir())
	config := strings.ReplaceAll(work, "https://one.example", "http://"+address)
	_, err = factoryWith(t, "--kubeconfig", write(t, t.TempDir()+"/c", config)).ServerVersion()
	if failure.KindOf(err) != failure.Unreachable || !strings.Contains(err.Error(), "no answer from "+address) {
		t.Errorf("error %v", err)
	}
}
