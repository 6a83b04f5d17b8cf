package llmisvc_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve/llmisvc"
)

func spec(t *testing.T, text string) map[string]any {
	t.Helper()
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

func TestMerge(t *testing.T) {
	tests := map[string]struct{ base, own, want string }{
		"containers merge by name": {
			"template: {containers: [{name: main, env: [{name: A, value: '1'}], ports: [{containerPort: 8000}]}]}",
			"template: {containers: [{name: main, image: i, env: [{name: B, value: '2'}]}]}",
			"template: {containers: [{name: main, image: i, env: [{name: B, value: '2'}, {name: A, value: '1'}], ports: [{containerPort: 8000}]}]}",
		},
		"prefill's template merges too": {
			"prefill: {template: {containers: [{name: main, ports: [{containerPort: 8000}]}]}}",
			"prefill: {template: {containers: [{name: main, image: i}]}, replicas: 1}",
			"prefill: {template: {containers: [{name: main, image: i, ports: [{containerPort: 8000}]}]}, replicas: 1}",
		},
		"triggers are replaced": {
			"scaling: {maxReplicas: 4, keda: {pollingInterval: 15, triggers: [{type: prometheus, metadata: {query: q, threshold: '2'}}, {type: cron}]}}",
			"scaling: {keda: {triggers: [{type: prometheus, metadata: {threshold: '3'}}]}}",
			"scaling: {maxReplicas: 4, keda: {pollingInterval: 15, triggers: [{type: prometheus, metadata: {threshold: '3'}}]}}",
		},
		"replicas displace scaling": {
			"scaling: {maxReplicas: 4}", "replicas: 2", "replicas: 2",
		},
		"scaling displaces replicas": {
			"replicas: 2", "scaling: {maxReplicas: 4}", "scaling: {maxReplicas: 4}",
		},
		"keda displaces wva": {
			"scaling: {maxReplicas: 4, wva: {hpa: {}}}", "scaling: {keda: {triggers: []}}", "scaling: {maxReplicas: 4, keda: {triggers: []}}",
		},
		"references are not inherited": {
			"model: {uri: a}", "baseRefs: [{name: base}]", "model: {uri: a}",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			base, own := spec(t, test.base), spec(t, test.own)
			got, err := llmisvc.Merge(base, own)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(spec(t, test.want), got); diff != "" {
				t.Errorf("merged (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(spec(t, test.base), base); diff != "" {
				t.Errorf("the base changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInheritance(t *testing.T) {
	tests := map[string]struct {
		spec          string
		presets, refs []string
	}{
		"single":            {"{}", []string{"kserve-config-llm-template"}, []string{}},
		"prefill":           {"prefill: {replicas: 1}", []string{"kserve-config-llm-prefill-template", "kserve-config-llm-decode-template"}, []string{}},
		"refs stay in line": {"baseRefs: [{name: b}, {name: a}]", []string{"kserve-config-llm-template"}, []string{"b", "a"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: map[string]any{"spec": spec(t, test.spec)}}
			if diff := cmp.Diff(test.presets, llmisvc.PresetsOf(live)); diff != "" {
				t.Errorf("presets (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.refs, llmisvc.BaseRefs(live)); diff != "" {
				t.Errorf("references (-want +got):\n%s", diff)
			}
		})
	}
}
