package controller

import "k8s.io/apimachinery/pkg/runtime/schema"

const (
	kindISVC    = "InferenceService"
	kindLLMISVC = "LLMInferenceService"
)

// The resources that are read and written.
var (
	inferenceServices = schema.GroupVersionResource{Group: "serving.kserve.io", Version: "v1beta1", Resource: "inferenceservices"}
	llmServices       = schema.GroupVersionResource{Group: "serving.kserve.io", Version: "v1alpha2", Resource: "llminferenceservices"}
	llmConfigs        = schema.GroupVersionResource{Group: "serving.kserve.io", Version: "v1alpha2", Resource: "llminferenceserviceconfigs"}
	deployments       = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	services          = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	ingresses         = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}
	autoscalers       = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
	scaledObjects     = schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"}
)

// watched are the resources whose changes lead to a reconcile.
func watched() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{
		inferenceServices, llmServices, llmConfigs, deployments, services, ingresses, autoscalers, scaledObjects,
	}
}
