// Package predictor builds and edits the objects that serve a model: which
// prefix they load, what they ask of a node, under which name they answer.
package predictor

import (
	"fmt"
	"maps"
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

// gpuResource is the extended resource of NVIDIA's device plugin.
const gpuResource = "nvidia.com/gpu"

// Apply puts settings into a template's objects.
func Apply(objects []*unstructured.Unstructured, settings Settings) error {
	for _, object := range objects {
		object.SetNamespace(settings.Namespace)
		if settings.Name != "" {
			object.SetName(settings.Name)
		}
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
			if err := editPod(object, []string{"spec", "template", "spec"}, settings); err != nil {
				return err
			}
		case KindInferenceService:
			if err := editPod(object, []string{"spec", "predictor"}, settings); err != nil {
				return err
			}
		}
	}
	return nil
}

// Edit puts settings into the pod of a user's own object and leaves the rest of
// it alone.
func Edit(object *unstructured.Unstructured, settings Settings) error {
	path := []string{"spec", "template", "spec"}
	if object.GetKind() == KindInferenceService {
		path = []string{"spec", "predictor"}
	}
	return editPod(object, path, settings)
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

// editPod edits the pod at path, whose first container is the engine.
func editPod(object *unstructured.Unstructured, path []string, settings Settings) error {
	containers, found, err := unstructured.NestedSlice(object.Object, append(slices.Clone(path), "containers")...)
	if err != nil || !found || len(containers) == 0 {
		return fmt.Errorf("%s %s has no containers at %s", object.GetKind(), object.GetName(), strings.Join(path, "."))
	}
	engine, ok := containers[0].(map[string]any)
	if !ok {
		return fmt.Errorf("%s %s: its first container is not an object", object.GetKind(), object.GetName())
	}
	editContainer(engine, settings)
	if err := unstructured.SetNestedSlice(object.Object, containers, append(slices.Clone(path), "containers")...); err != nil {
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

func editContainer(engine map[string]any, settings Settings) {
	if settings.Image != "" {
		engine["image"] = settings.Image
	}
	args := append(stringsOf(engine["args"]), settings.Args...)
	engine["args"] = anys(setModel(args, settings.ModelURI, settings.ServedModel))
	if env := setEnv(engine["env"], settings); len(env) > 0 {
		engine["env"] = env
	}
	resources, _ := engine["resources"].(map[string]any)
	if resources == nil {
		resources = map[string]any{}
	}
	set := func(side, name, value string) {
		if value == "" {
			return
		}
		values, _ := resources[side].(map[string]any)
		if values == nil {
			values = map[string]any{}
		}
		values[name] = value
		resources[side] = values
	}
	set("requests", "cpu", settings.CPU)
	if limits, ok := resources["limits"].(map[string]any); ok && settings.CPU != "" {
		delete(limits, "cpu")
	}
	for _, side := range []string{"requests", "limits"} {
		set(side, "memory", settings.Memory)
		set(side, gpuResource, settings.GPU)
	}
	engine["resources"] = resources
}

// setModel makes vLLM's arguments load uri. Of an existing list, only the model
// reference changes: the value of --model, or the s3:// argument.
func setModel(args []string, uri, served string) []string {
	replaced := false
	for i, arg := range args {
		switch {
		case arg == "--model" && i+1 < len(args):
			args[i+1], replaced = uri, true
		case strings.HasPrefix(arg, "--model="):
			args[i], replaced = "--model="+uri, true
		case strings.HasPrefix(arg, "s3://") && (i == 0 || args[i-1] != "--model"):
			args[i], replaced = uri, true
		}
	}
	if !replaced {
		args = append([]string{uri}, args...)
	}
	if !hasFlag(args, "--load-format") {
		args = append(args, "--load-format", "runai_streamer")
	}
	if served != "" && !hasFlag(args, "--served-model-name") {
		args = append(args, "--served-model-name", served)
	}
	return args
}

// ReferencesModel says whether a user's own object has a model reference that a
// rollout may replace.
func ReferencesModel(object *unstructured.Unstructured) bool {
	for _, path := range [][]string{{"spec", "predictor", "containers"}, {"spec", "template", "spec", "containers"}} {
		containers, _, _ := unstructured.NestedSlice(object.Object, path...)
		if len(containers) == 0 {
			continue
		}
		engine, _ := containers[0].(map[string]any)
		args := stringsOf(engine["args"])
		if hasFlag(args, "--model") || slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "s3://") }) {
			return true
		}
	}
	return false
}

// ServedModel returns the value of --served-model-name, "" where there is none.
func ServedModel(objects []*unstructured.Unstructured) string {
	for _, object := range objects {
		for _, path := range [][]string{{"spec", "predictor", "containers"}, {"spec", "template", "spec", "containers"}} {
			containers, _, _ := unstructured.NestedSlice(object.Object, path...)
			if len(containers) == 0 {
				continue
			}
			engine, _ := containers[0].(map[string]any)
			args := stringsOf(engine["args"])
			for i, arg := range args {
				if arg == "--served-model-name" && i+1 < len(args) {
					return args[i+1]
				}
				if value, ok := strings.CutPrefix(arg, "--served-model-name="); ok {
					return value
				}
			}
		}
	}
	return ""
}

func hasFlag(args []string, name string) bool {
	return slices.ContainsFunc(args, func(arg string) bool { return arg == name || strings.HasPrefix(arg, name+"=") })
}

func setEnv(existing any, settings Settings) []any {
	var env []any
	list, _ := existing.([]any)
	for _, entry := range list {
		variable, _ := entry.(map[string]any)
		name, _ := variable["name"].(string)
		_, plain := settings.Env[name]
		_, secret := settings.SecretEnv[name]
		if !plain && !secret {
			env = append(env, entry)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(settings.Env)) {
		env = append(env, map[string]any{"name": name, "value": settings.Env[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(settings.SecretEnv)) {
		ref := settings.SecretEnv[name]
		env = append(env, map[string]any{"name": name, "valueFrom": map[string]any{
			"secretKeyRef": map[string]any{"name": ref.Secret, "key": ref.Key},
		}})
	}
	return env
}

func stringsOf(value any) []string {
	list, _ := value.([]any)
	var all []string
	for _, entry := range list {
		text, _ := entry.(string)
		all = append(all, text)
	}
	return all
}

func anys(list []string) []any {
	all := make([]any, len(list))
	for i, text := range list {
		all[i] = text
	}
	return all
}
