package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
	"github.com/kubectl-inference/kubectl-inference/plugins/jobrun"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/prom"
)

// prometheusNone is --prometheus for a run without the server's own series.
const prometheusNone = "none"

// source is the Prometheus of a target's own trigger, and what a Job shows it:
// the same values, by reference to the same Secrets.
type source struct {
	url      string
	insecure bool
	auth     *record.PrometheusAuth
	secrets  []jobrun.SecretEnv
	configs  []jobrun.ConfigEnv
	// note says what is different from KEDA's own request.
	note string
}

// triggerSource reads the first Prometheus trigger of a scaler; nil where there
// is none.
func triggerSource(ctx context.Context, client dynamic.Interface, found *scaler) (*source, error) {
	if found == nil || found.object.GetKind() != "ScaledObject" {
		return nil, nil
	}
	var object keda.ScaledObject
	data, err := json.Marshal(found.object.Object)
	if err == nil {
		err = json.Unmarshal(data, &object)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", found, err)
	}
	at := slices.IndexFunc(object.Spec.Triggers, func(t keda.Trigger) bool { return t.Type == "prometheus" && t.Metadata["serverAddress"] != "" })
	if at < 0 {
		return nil, nil
	}
	s, err := sourceOf(ctx, client, found.object.GetNamespace(), object.Spec.Triggers[at])
	if err != nil {
		return nil, failure.New(failure.Usage, "give --prometheus URL of a server that the Job may ask without credentials, or --prometheus none to measure without the server's own series",
			"bench: ask the Prometheus of %s as KEDA does: %w", found, err)
	}
	return s, nil
}

// sourceOf follows KEDA's own rules, on the names of variables in place of the
// values.
func sourceOf(ctx context.Context, client dynamic.Interface, namespace string, trigger keda.Trigger) (*source, error) {
	s := &source{}
	given := keda.Credentials{Parameters: map[string]string{}}
	if ref := trigger.AuthenticationRef; ref != nil && ref.Name != "" {
		if ref.Kind == "ClusterTriggerAuthentication" {
			return nil, fmt.Errorf("the Secrets of ClusterTriggerAuthentication %s lie in KEDA's namespace, which a Job in %s cannot refer to", ref.Name, namespace)
		}
		object, err := client.Resource(schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "triggerauthentications"}).
			Namespace(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return nil, kube.Explain(err, "get triggerauthentication %s/%s", namespace, ref.Name)
		}
		if err := s.refer(object, &given); err != nil {
			return nil, err
		}
	}
	// Only the way to the server matters, not what is asked on it.
	trigger.Metadata = maps.Clone(trigger.Metadata)
	trigger.Metadata["query"] = cmp.Or(trigger.Metadata["query"], "vector(1)")
	asked, err := prom.FromTrigger(trigger, given, keda.Newest())
	if err != nil {
		return nil, err
	}
	if asked.Auth.OAuth != nil {
		return nil, errors.New("authMode oauth is not spoken by the Job")
	}
	if asked.Auth.Username != "" && !strings.HasPrefix(asked.Auth.Username, record.FromEnv) {
		return nil, errors.New("its serverAddress holds credentials, which would stand in the plan")
	}
	s.url, s.insecure, s.note = asked.Address.String(), asked.Insecure, asked.Note
	if asked.Auth.AWS != nil && asked.Auth.AWS.AccessKeyID == "" {
		s.note = "queries are signed with the identity of the Job's ServiceAccount: KEDA's is that of its own pod"
	}
	s.auth = authOf(asked)
	return s, nil
}

// refer turns what a TriggerAuthentication names into variables of the pod.
func (s *source) refer(object *unstructured.Unstructured, given *keda.Credentials) error {
	spec, _, _ := unstructured.NestedMap(object.Object, "spec")
	for _, key := range slices.Sorted(maps.Keys(spec)) {
		switch key {
		case "secretTargetRef", "configMapTargetRef":
		case "podIdentity":
			given.PodIdentity, _, _ = unstructured.NestedString(spec, "podIdentity", "provider")
		default:
			return fmt.Errorf("TriggerAuthentication %s takes credentials from %s, which a Job cannot refer to", object.GetName(), key)
		}
	}
	for _, field := range []string{"configMapTargetRef", "secretTargetRef"} {
		entries, _, _ := unstructured.NestedSlice(spec, field)
		for _, entry := range entries {
			fields, _ := entry.(map[string]any)
			text := func(name string) string { value, _, _ := unstructured.NestedString(fields, name); return value }
			parameter := text("parameter")
			name := "INFERENCE_PROMETHEUS_" + strings.ToUpper(unfitEnv.ReplaceAllString(parameter, "_"))
			given.Parameters[parameter] = record.FromEnv + name
			if field == "secretTargetRef" {
				s.secrets = append(s.secrets, jobrun.SecretEnv{Name: name, Secret: text("name"), Key: text("key")})
			} else {
				s.configs = append(s.configs, jobrun.ConfigEnv{Name: name, ConfigMap: text("name"), Key: text("key")})
			}
		}
	}
	return nil
}

func authOf(asked prom.Source) *record.PrometheusAuth {
	a := asked.Auth
	auth := record.PrometheusAuth{Bearer: a.Bearer, Username: a.Username, Password: a.Password, CA: a.CA, Cert: a.Cert, Key: a.Key}
	if len(asked.Headers) > 0 {
		auth.Headers = map[string]string{}
		for name, value := range asked.Headers {
			if strings.HasPrefix(strings.ToLower(name), record.FromEnv) {
				// Canonical or not, the name of a variable is written as it is.
				name = record.FromEnv + strings.ToUpper(name[len(record.FromEnv):])
			} else {
				name = http.CanonicalHeaderKey(name)
			}
			auth.Headers[name] = value
		}
	}
	parameters := maps.Clone(asked.Parameters)
	if asked.Namespace != "" {
		if parameters == nil {
			parameters = map[string]string{}
		}
		parameters["namespace"] = cmp.Or(parameters["namespace"], asked.Namespace)
	}
	if len(parameters) > 0 {
		auth.Parameters = parameters
	}
	if a.AWS != nil {
		auth.AWS = &record.PrometheusAWS{Region: a.AWS.Region, AccessKeyID: a.AWS.AccessKeyID, SecretAccessKey: a.AWS.SecretKey, SessionToken: a.AWS.SessionID}
	}
	if auth.Headers == nil && auth.Parameters == nil && auth.AWS == nil && auth.Bearer+auth.Username+auth.CA+auth.Cert == "" {
		return nil
	}
	return &auth
}
