package kube

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

const (
	nameLabel    = "app.kubernetes.io/name"
	operatorName = "keda-operator"
)

// kedaVersionIn is the version of KEDA that an object tells: an HPA that KEDA
// made, by its label, or the operator's Deployment, by its image.
func kedaVersionIn(object *unstructured.Unstructured) string {
	labels := object.GetLabels()
	switch object.GetKind() {
	case "HorizontalPodAutoscaler":
		if labels["app.kubernetes.io/managed-by"] != operatorName {
			return ""
		}
		if version, ok := keda.ParseVersion(labels["app.kubernetes.io/version"]); ok {
			return version.String()
		}
	case "Deployment":
		if labels[nameLabel] != operatorName {
			return ""
		}
		containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		for _, container := range containers {
			fields, _ := container.(map[string]any)
			image, _ := fields["image"].(string)
			if version, ok := keda.ParseImage(image); ok {
				return version.String()
			}
		}
	}
	return ""
}

// askOperator reads KEDA's version from its operator where no HPA of the
// namespace bears it, as while everything is paused. Who may not look into
// KEDA's namespace gets the answer by the newest rules, which says so.
func (r *chainReader) askOperator(ctx context.Context, chains []chain.Chain) {
	without := func(c chain.Chain) bool { return c.ScaledObject != nil && c.KEDAVersion == "" }
	if !slices.ContainsFunc(chains, without) {
		return
	}
	_, _, deployments, _, _ := resources()
	list, err := r.client.Resource(deployments).List(ctx, metav1.ListOptions{LabelSelector: nameLabel + "=" + operatorName, Limit: 2})
	if err != nil {
		return
	}
	for i := range list.Items {
		for j := range chains {
			if version := kedaVersionIn(&list.Items[i]); version != "" && without(chains[j]) {
				chains[j].KEDAVersion = version
			}
		}
	}
}
