package sync

import (
	"path"
	"slices"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/hub"
)

// choose divides a listing into the files to sync, in path order, and those to
// leave out. Exclude wins over include, and both win over the preset.
func choose(files []hub.File, plan record.SyncPlan) (chosen []hub.File, skipped []record.ManifestSkipped, err error) {
	include, err := compile(plan.Include)
	if err != nil {
		return nil, nil, err
	}
	exclude, err := compile(plan.Exclude)
	if err != nil {
		return nil, nil, err
	}
	unread := func(string) string { return "" }
	if plan.Preset == record.PresetVLLM {
		unread = vllm(files)
	}
	skipped = []record.ManifestSkipped{}
	for _, file := range files {
		reason := ""
		switch {
		case exclude.match(file.Path):
			reason = "excluded"
		case include.match(file.Path):
		case len(include) > 0:
			reason = "not included"
		default:
			reason = unread(file.Path)
		}
		if reason != "" {
			skipped = append(skipped, record.ManifestSkipped{Path: file.Path, Size: file.Size, Reason: reason})
			continue
		}
		chosen = append(chosen, file)
	}
	slices.SortFunc(chosen, func(a, b hub.File) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(skipped, func(a, b record.ManifestSkipped) int { return strings.Compare(a.Path, b.Path) })
	return chosen, skipped, nil
}

// vllm returns a function that says why vLLM does not read a file of this
// repository, or "". vLLM takes the first kind of weights that it finds, in the
// order safetensors, bin, pt, so copies in other formats are dead weight.
func vllm(files []hub.File) func(string) string {
	has := func(fits func(string) bool) bool {
		return slices.ContainsFunc(files, func(f hub.File) bool { return fits(f.Path) })
	}
	top := func(name string) bool { return !strings.Contains(name, "/") }
	safetensors := has(func(name string) bool { return top(name) && path.Ext(name) == ".safetensors" })
	sharded := has(func(name string) bool { return name == "model.safetensors.index.json" || name == "model.safetensors" })
	// Mistral's own format is read from consolidated files and params.json.
	mistralOnly := has(func(name string) bool { return name == "params.json" }) && !has(func(name string) bool { return name == "config.json" })

	return func(name string) string {
		switch folder, _, nested := strings.Cut(name, "/"); {
		case nested && slices.Contains([]string{"original", "metal", "coreml", "onnx", "openvino", "flax", "gguf"}, folder):
			return "vllm does not read " + folder + "/"
		case name == ".gitattributes":
			return "git's own file"
		}
		switch extension := path.Ext(name); extension {
		case ".bin", ".pt", ".pth", ".h5", ".msgpack", ".ot", ".onnx", ".gguf", ".tflite":
			if safetensors {
				return "the model has safetensors"
			}
		case ".safetensors":
			if strings.HasPrefix(path.Base(name), "consolidated") && sharded && !mistralOnly {
				return "a second copy of the weights"
			}
		case ".json", ".jinja", ".txt", ".model", ".tiktoken", ".py":
		case ".md", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".pdf", ".mp4", ".ipynb":
			return "documentation"
		}
		return ""
	}
}
