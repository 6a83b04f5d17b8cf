// Package predictor builds and edits the objects that serve a model: which
// prefix they load, what they ask of a node, under which name they answer.
package predictor

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Kinds of predictors.
const (
	KindInferenceService = "InferenceService"
	KindDeployment       = "Deployment"
)

// Settings are what a rollout says about a predictor. Empty fields leave the
// object as it is.
type Settings struct {
	Name        string
	Namespace   string
	ModelURI    string
	ServedModel string
	Image       string
	// Args are added to the engine's arguments.
	Args []string
	// Env and SecretEnv (variable -> Secret name and key) are set on the
	// engine's container, replacing variables of the same name.
	Env       map[string]string
	SecretEnv map[string]SecretKey
	// Resources are set as requests and limits alike, except CPU, which is
	// only requested: a CPU limit slows the engine's scheduler.
	CPU, Memory, GPU string
	ServiceAccount   string
	NodeSelector     map[string]string
}

// SecretKey names one key of a Secret.
type SecretKey struct{ Secret, Key string }

// Apply puts settings into a template's objects. The model is served under
// Name where nothing else is said.
func Apply(objects []*unstructured.Unstructured, settings Settings) error {
	if settings.ServedModel == "" && !hasFlag(settings.Args, flagServed) {
		settings.ServedModel = settings.Name
	}
	for _, object := range objects {
		object.SetNamespace(settings.Namespace)
		object.SetName(settings.Name)
		switch object.GetKind() {
		case "Service":
			if err := unstructured.SetNestedStringMap(object.Object, Selector(KindDeployment, settings.Name), "spec", "selector"); err != nil {
				return err
			}
		case KindDeployment:
			selector := Selector(KindDeployment, settings.Name)
			for _, path := range [][]string{{"spec", "selector", "matchLabels"}, {"spec", "template", "metadata", "labels"}} {
				if err := unstructured.SetNestedStringMap(object.Object, selector, path...); err != nil {
					return err
				}
			}
			object.SetLabels(selector)
			if err := Edit(object, settings); err != nil {
				return err
			}
		case KindInferenceService:
			if err := Edit(object, settings); err != nil {
				return err
			}
		}
	}
	return nil
}

// podPath returns where an object of kind keeps its pod, nil for other kinds.
func podPath(kind string) []string {
	switch kind {
	case KindInferenceService:
		return []string{"spec", "predictor"}
	case KindDeployment:
		return []string{"spec", "template", "spec"}
	}
	return nil
}

// Edit puts settings into the pod of an object and leaves the rest of it alone.
// The engine is the container that names the model, else the first.
func Edit(object *unstructured.Unstructured, settings Settings) error {
	settleMode(object)
	path := podPath(object.GetKind())
	list := append(slices.Clone(path), "containers")
	containers, _, err := unstructured.NestedSlice(object.Object, list...)
	if err != nil || len(containers) == 0 {
		return fmt.Errorf("%s %s has no containers at %s", object.GetKind(), object.GetName(), strings.Join(path, "."))
	}
	engine, ok := containers[engineAt(containers)].(map[string]any)
	if !ok {
		return fmt.Errorf("%s %s: its first container is not an object", object.GetKind(), object.GetName())
	}
	if err := editContainer(engine, settings); err != nil {
		return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
	}
	if err := unstructured.SetNestedSlice(object.Object, containers, list...); err != nil {
		return err
	}
	if settings.ServiceAccount != "" {
		if err := unstructured.SetNestedField(object.Object, settings.ServiceAccount, append(slices.Clone(path), "serviceAccountName")...); err != nil {
			return err
		}
	}
	if len(settings.NodeSelector) > 0 {
		return unstructured.SetNestedStringMap(object.Object, settings.NodeSelector, append(slices.Clone(path), "nodeSelector")...)
	}
	return nil
}

// engineAt returns the index of the first container that names a model, else 0.
func engineAt(containers []any) int {
	return max(0, slices.IndexFunc(containers, func(container any) bool { return namesModel(argsOf(container)) }))
}

// engineArgs returns the arguments of an object's engine, nil where there is none.
func engineArgs(object *unstructured.Unstructured) []string {
	path := podPath(object.GetKind())
	if path == nil {
		return nil
	}
	containers, _, _ := unstructured.NestedSlice(object.Object, append(slices.Clone(path), "containers")...)
	if len(containers) == 0 {
		return nil
	}
	return argsOf(containers[engineAt(containers)])
}

// ReferencesModel says whether an object is a predictor with a model reference
// that a rollout may replace.
func ReferencesModel(object *unstructured.Unstructured) bool { return namesModel(engineArgs(object)) }

// ServedModel returns the value of --served-model-name, "" where there is none.
// Of several names it is the first, which the server calls itself by.
func ServedModel(objects []*unstructured.Unstructured) string {
	for _, object := range objects {
		if name := valueOf(engineArgs(object), flagServed); name != "" {
			return name
		}
	}
	return ""
}

// Selector returns the labels of the Deployment that serves.
func Selector(kind, name string) map[string]string {
	if kind == KindInferenceService {
		return map[string]string{"serving.kserve.io/inferenceservice": name, "component": "predictor"}
	}
	return map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/component": "predictor"}
}

// URL returns where the predictor answers inside the cluster.
func URL(kind, name, namespace string) string {
	if kind == KindInferenceService {
		name += "-predictor"
	}
	return fmt.Sprintf("http://%s.%s.svc", name, namespace)
}

// settleMode writes a deployment mode's old spelling as KServe stores it:
// KServe rewrites RawDeployment to Standard and then owns the annotation, so
// the same file applied again would conflict with that.
func settleMode(object *unstructured.Unstructured) {
	const mode = "serving.kserve.io/deploymentMode"
	annotations := object.GetAnnotations()
	if object.GetKind() == KindInferenceService && annotations[mode] == "RawDeployment" {
		annotations[mode] = "Standard"
		object.SetAnnotations(annotations)
	}
}
