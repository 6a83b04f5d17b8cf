package predictor

import (
	"maps"
	"slices"
)

// gpuResource is the extended resource of NVIDIA's device plugin.
const gpuResource = "nvidia.com/gpu"

// editContainer puts settings into the engine's container.
func editContainer(engine map[string]any, settings Settings) error {
	if err := checkArgs(engine); err != nil {
		return err
	}
	if settings.Image != "" {
		engine["image"] = settings.Image
	}
	args := setModel(append(argsOf(engine), settings.Args...), settings.ModelURI, settings.ServedModel)
	list := make([]any, len(args))
	for i, text := range args {
		list[i] = text
	}
	engine["args"] = list
	if env := setEnv(engine["env"], settings); len(env) > 0 {
		engine["env"] = env
	}
	setResources(engine, settings)
	return nil
}

// setResources sets requests and limits. A limit of the CPU goes where a request
// is set: the two would not fit each other.
func setResources(engine map[string]any, settings Settings) {
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
	if len(resources) > 0 {
		engine["resources"] = resources
	}
}

// setEnv returns the variables with those of settings, each name once.
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
