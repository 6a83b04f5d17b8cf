package kserve_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve"
)

func TestObjects(t *testing.T) {
	tests := map[string]struct {
		read func() ([]*unstructured.Unstructured, error)
		want []string
	}{
		"CRDs": {kserve.CRDs, []string{
			"CustomResourceDefinition inferenceservices.serving.kserve.io",
			"CustomResourceDefinition llminferenceserviceconfigs.serving.kserve.io",
			"CustomResourceDefinition llminferenceservices.serving.kserve.io",
		}},
		"admission": {kserve.Admission, []string{
			"MutatingAdmissionPolicy kserve-standin-deployment-mode",
			"MutatingAdmissionPolicyBinding kserve-standin-deployment-mode",
			"ValidatingAdmissionPolicy kserve-standin-inferenceservice",
			"ValidatingAdmissionPolicyBinding kserve-standin-inferenceservice",
			"ValidatingAdmissionPolicy kserve-standin-llminferenceservice",
			"ValidatingAdmissionPolicyBinding kserve-standin-llminferenceservice",
		}},
		"manifests": {kserve.Manifests, []string{
			"Namespace kserve",
			"ServiceAccount kserve-standin",
			"ClusterRole kserve-standin",
			"ClusterRoleBinding kserve-standin",
			"LLMInferenceServiceConfig kserve-config-llm-template",
			"LLMInferenceServiceConfig kserve-config-llm-prefill-template",
			"LLMInferenceServiceConfig kserve-config-llm-decode-template",
			"Deployment kserve-standin",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects, err := test.read()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, object := range objects {
				got = append(got, object.GetKind()+" "+object.GetName())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecode(t *testing.T) {
	objects, err := kserve.Decode([]byte("---\n# nothing\n---\napiVersion: v1\nkind: A\n---\napiVersion: v1\nkind: B\n"))
	if err != nil || len(objects) != 2 || objects[1].GetKind() != "B" {
		t.Errorf("objects %v, error %v", objects, err)
	}
	if _, err := kserve.Decode([]byte("a: [")); err == nil {
		t.Error("broken YAML was read")
	}
}
