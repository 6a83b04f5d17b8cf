package plan

import (
	"slices"
	"strings"
)

// managedBy names the tool that would write over a change of object, "" where
// none is known. A marker counts only where it is about this very object:
// controllers copy their owner's markers to what they make.
func managedBy(object map[string]any) string {
	name, namespace := text(object, "metadata", "name"), text(object, "metadata", "namespace")
	labels, annotations := texts(object, "labels"), texts(object, "annotations")
	// The form is APPLICATION:GROUP/KIND:NAMESPACE/NAME.
	if id := annotations["argocd.argoproj.io/tracking-id"]; strings.HasSuffix(id, "/"+text(object, "kind")+":"+namespace+"/"+name) {
		application, _, _ := strings.Cut(id, ":")
		return "Argo CD application " + application
	}
	if owner := labels["kustomize.toolkit.fluxcd.io/name"]; owner != "" && !fluxLeavesAlone(annotations) {
		return "Flux Kustomization " + owner
	}
	if owner := labels["helm.toolkit.fluxcd.io/name"]; owner != "" {
		return "Flux HelmRelease " + owner
	}
	if release := annotations["meta.helm.sh/release-name"]; release != "" && labels["app.kubernetes.io/managed-by"] == "Helm" {
		return "Helm release " + release
	}
	return controllerOf(object)
}

// fluxLeavesAlone says whether the object opted out of Flux's writes.
func fluxLeavesAlone(annotations map[string]string) bool {
	return annotations["kustomize.toolkit.fluxcd.io/reconcile"] == "disabled" ||
		slices.Contains([]string{"Ignore", "IfNotPresent"}, annotations["kustomize.toolkit.fluxcd.io/ssa"])
}

// controllerOf names the controlling owner of an object, "" where it has none.
func controllerOf(object map[string]any) string {
	owners, _ := at(object, "metadata", "ownerReferences").([]any)
	for _, owner := range owners {
		if controls, _ := at(owner, "controller").(bool); controls {
			return text(owner, "kind") + " " + text(owner, "name")
		}
	}
	return ""
}
