package kube

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// apiServer answers for the paths of objects, as an API server does: 404 with a
// Status for what is not there, 403 for what is forbidden.
type apiServer struct {
	objects   map[string]string
	forbidden map[string]bool

	mu       sync.Mutex
	requests []string
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.URL.Path)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if s.forbidden[r.URL.Path] {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"forbidden: User \"u\" cannot list resource"}`)
		return
	}
	body, found := s.objects[r.URL.Path]
	if !found {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"%s not found","details":{"name":"x","kind":"y"}}`, r.URL.Path)
		return
	}
	fmt.Fprint(w, body)
}

const (
	hpaPath        = "/apis/autoscaling/v2/namespaces/llm/horizontalpodautoscalers"
	scaledPath     = "/apis/keda.sh/v1alpha1/namespaces/llm/scaledobjects"
	deploymentPath = "/apis/apps/v1/namespaces/llm/deployments"
	eventPath      = "/api/v1/namespaces/llm/events"
	podPath        = "/api/v1/namespaces/llm/pods"
)

func list(apiVersion, kind string, items ...string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{},"items":[%s]}`, apiVersion, kind+"List", strings.Join(items, ","))
}

// service is one part of a service: ScaledObject, HPA and Deployment.
func service(owner, ownerKind, name, target string) (scaledObject, hpa, deployment string) {
	scaledObject = fmt.Sprintf(`{"apiVersion":"keda.sh/v1alpha1","kind":"ScaledObject","metadata":{"name":%q,"namespace":"llm","uid":"so-%[1]s"},"spec":{"scaleTargetRef":{"name":%q},"triggers":[{"type":"prometheus","metadata":{"threshold":"2"}}]}}`, name, target)
	hpa = fmt.Sprintf(`{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"keda-hpa-%s","namespace":"llm","ownerReferences":[{"apiVersion":"keda.sh/v1alpha1","kind":"ScaledObject","name":%[1]q,"uid":"so-%[1]s","controller":true}]},"spec":{"maxReplicas":3,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":%q},"metrics":[{"type":"External","external":{"metric":{"name":"s0-prometheus"},"target":{"type":"Value","value":"2"}}}]}}`, name, target)
	deployment = fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q,"namespace":"llm","labels":{"llm-d.ai/role":"decode"},"ownerReferences":[{"apiVersion":"serving.kserve.io/v1beta1","kind":%q,"name":%q,"uid":"u","controller":true}],
		"managedFields":[{"manager":"kubectl","operation":"Update","time":"2026-11-30T11:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:template":{}}}},{"manager":"kube-controller-manager","operation":"Update","subresource":"scale","time":"2026-11-30T12:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}}}]},
		"spec":{"replicas":2,"selector":{"matchLabels":{"app":%[1]q}}},"status":{"replicas":3,"readyReplicas":2}}`, target, ownerKind, owner)
	return scaledObject, hpa, deployment
}

// cluster is a namespace with a service of one part and one of two.
func cluster() *apiServer {
	so1, hpa1, deploy1 := service("r1", "InferenceService", "r1", "r1-predictor")
	so2, hpa2, deploy2 := service("pd", "LLMInferenceService", "pd-keda", "pd-kserve")
	so3, hpa3, deploy3 := service("pd", "LLMInferenceService", "pd-prefill-keda", "pd-kserve-prefill")
	return &apiServer{forbidden: map[string]bool{}, objects: map[string]string{
		"/version":                        `{"major":"1","minor":"37","gitVersion":"v1.37.2"}`,
		hpaPath:                           list("autoscaling/v2", "HorizontalPodAutoscaler", hpa1, hpa2, hpa3),
		scaledPath:                        list("keda.sh/v1alpha1", "ScaledObject", so1, so2, so3),
		deploymentPath:                    list("apps/v1", "Deployment", deploy1, deploy2, deploy3),
		eventPath:                         list("v1", "Event"),
		podPath:                           list("v1", "Pod", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`),
		"/api":                            `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis":                           `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}},{"name":"serving.kserve.io","versions":[{"groupVersion":"serving.kserve.io/v1beta1","version":"v1beta1"}],"preferredVersion":{"groupVersion":"serving.kserve.io/v1beta1","version":"v1beta1"}}]}`,
		"/api/v1":                         `{"kind":"APIResourceList","groupVersion":"v1","resources":[]}`,
		"/apis/apps/v1":                   `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[{"name":"deployments","singularName":"deployment","namespaced":true,"kind":"Deployment","verbs":["get","list"]}]}`,
		"/apis/serving.kserve.io/v1beta1": `{"kind":"APIResourceList","groupVersion":"serving.kserve.io/v1beta1","resources":[{"name":"inferenceservices","singularName":"inferenceservice","namespaced":true,"kind":"InferenceService","verbs":["get","list"],"shortNames":["isvc"]}]}`,
		"/apis/serving.kserve.io/v1beta1/namespaces/llm/inferenceservices/empty": `{"apiVersion":"serving.kserve.io/v1beta1","kind":"InferenceService","metadata":{"name":"empty","namespace":"llm"}}`,
	}}
}

func factoryOf(t *testing.T, server *apiServer) *Factory {
	t.Helper()
	http := httptest.NewServer(server)
	t.Cleanup(http.Close)
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	factory := NewFactory("test", nil)
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	factory.AddFlags(flags)
	if err := flags.Parse([]string{"--server", http.URL, "--cache-dir", t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	return factory
}

func TestFetchChains(t *testing.T) {
	tests := map[string]struct {
		target Target
		links  []string
	}{
		"service":       {Target{"isvc", "r1"}, []string{"InferenceService/r1 ScaledObject/r1 HorizontalPodAutoscaler/keda-hpa-r1 Deployment/r1-predictor"}},
		"full name":     {Target{"InferenceServices.serving.kserve.io", "r1"}, []string{"InferenceService/r1 ScaledObject/r1 HorizontalPodAutoscaler/keda-hpa-r1 Deployment/r1-predictor"}},
		"bare name":     {Target{"", "r1-predictor"}, []string{"InferenceService/r1 ScaledObject/r1 HorizontalPodAutoscaler/keda-hpa-r1 Deployment/r1-predictor"}},
		"disaggregated": {Target{"llmisvc", "pd"}, []string{"LLMInferenceService/pd ScaledObject/pd-keda HorizontalPodAutoscaler/keda-hpa-pd-keda Deployment/pd-kserve", "LLMInferenceService/pd ScaledObject/pd-prefill-keda HorizontalPodAutoscaler/keda-hpa-pd-prefill-keda Deployment/pd-kserve-prefill"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := cluster()
			fetched, err := factoryOf(t, server).FetchChains(t.Context(), "llm", test.target)
			if err != nil {
				t.Fatal(err)
			}
			var links []string
			for _, chain := range fetched.Chains {
				var line []string
				for _, link := range chain.Links() {
					line = append(line, link.Kind+"/"+link.Name)
				}
				links = append(links, strings.Join(line, " "))
				if chain.Events == nil || len(chain.Pods) != 1 || chain.Workload.Writer.Manager != "kube-controller-manager" || chain.Workload.Status != 3 {
					t.Errorf("got %+v", chain)
				}
			}
			if diff := cmp.Diff(test.links, links); diff != "" {
				t.Error(diff)
			}
			if fetched.KubernetesVersion != "v1.37" || len(fetched.Unread) != 0 {
				t.Errorf("got %q, %v", fetched.KubernetesVersion, fetched.Unread)
			}
			if len(server.requests) > 12 {
				t.Errorf("%d requests: %v", len(server.requests), server.requests)
			}
		})
	}
}

func TestFetchChainsFails(t *testing.T) {
	tests := map[string]struct {
		target Target
		change func(*apiServer)
		kind   failure.Kind
		text   string
	}{
		"unknown deployment": {Target{"deploy", "nobody"}, nil, failure.NotFound, "deployment llm/nobody"},
		"unknown service":    {Target{"isvc", "nobody"}, nil, failure.NotFound, "inferenceservice llm/nobody"},
		"unknown name":       {Target{"", "nobody"}, nil, failure.NotFound, "find nobody in llm"},
		"no workload yet":    {Target{"isvc", "empty"}, nil, failure.NotFound, "owns no workload"},
		"no KEDA":            {Target{"so", "r1"}, func(s *apiServer) { delete(s.objects, scaledPath) }, failure.NotFound, "KEDA is not installed"},
		"no such type":       {Target{"lws", "r1"}, nil, failure.NotFound, "find lws/r1"},
		"HPAs denied":        {Target{"isvc", "r1"}, func(s *apiServer) { s.forbidden[hpaPath] = true }, failure.Denied, "list horizontalpodautoscalers in llm"},
		"target denied":      {Target{"so", "r1"}, func(s *apiServer) { s.forbidden[scaledPath] = true }, failure.Denied, "list scaledobjects in llm"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := cluster()
			if test.change != nil {
				test.change(server)
			}
			_, err := factoryOf(t, server).FetchChains(t.Context(), "llm", test.target)
			if failure.KindOf(err) != test.kind || err == nil || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got kind %d: %v", failure.KindOf(err), err)
			}
			if failure.HintOf(err) == "" && test.target.Type != "lws" {
				t.Errorf("no hint: %v", err)
			}
		})
	}
}

func TestFetchChainsDegrades(t *testing.T) {
	tests := map[string]struct {
		path, input, message string
	}{
		"events":        {eventPath, "events", "cannot list events in llm: the HPA's own recent rescales are unknown"},
		"pods":          {podPath, "pods", "cannot list pods in llm: how many pods are Ready is unknown"},
		"scaledobjects": {scaledPath, "keda", "cannot list scaledobjects.keda.sh in llm: triggers are shown as the HPA knows them"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := cluster()
			server.forbidden[test.path] = true
			fetched, err := factoryOf(t, server).FetchChains(t.Context(), "llm", Target{"isvc", "r1"})
			if err != nil {
				t.Fatal(err)
			}
			if len(fetched.Unread) != 1 || fetched.Unread[0].Input != test.input || fetched.Unread[0].Message != test.message {
				t.Errorf("got %+v", fetched.Unread)
			}
		})
	}
}

func TestParseTarget(t *testing.T) {
	tests := map[string]struct {
		args []string
		want Target
		bad  bool
	}{
		"slash":       {[]string{"isvc/r1"}, Target{"isvc", "r1"}, false},
		"two words":   {[]string{"isvc", "r1"}, Target{"isvc", "r1"}, false},
		"bare":        {[]string{"r1"}, Target{"", "r1"}, false},
		"no name":     {[]string{"isvc/"}, Target{}, true},
		"no type":     {[]string{"/r1"}, Target{}, true},
		"two slashes": {[]string{"a/b/c"}, Target{}, true},
		"none":        {nil, Target{}, true},
		"three":       {[]string{"a", "b", "c"}, Target{}, true},
		"empty":       {[]string{""}, Target{}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseTarget(test.args)
			if got != test.want || (err != nil) != test.bad || (test.bad && failure.KindOf(err) != failure.Usage) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestServerStubIsJSON(t *testing.T) {
	for path, body := range cluster().objects {
		if !json.Valid([]byte(body)) {
			t.Errorf("%s is no JSON: %s", path, body)
		}
	}
}
