package bench

import (
	"embed"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// presets are bench files of a name: the profiles of the capacity platform that
// this project began with (Kelvinskell/ai-inference-capacity-engineering-platform).
//
//go:embed presets/*.yaml
var presets embed.FS

// profile says in a bench file what its cases are for.
type profile struct {
	Name       string                 `json:"name"`
	Hypothesis string                 `json:"hypothesis"`
	Engine     *record.EngineSettings `json:"engine"`
}

func presetNames() []string {
	entries, err := presets.ReadDir("presets")
	if err != nil {
		panic(err) // they are part of the program
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = strings.TrimSuffix(entry.Name(), ".yaml")
	}
	return names
}

// readPreset takes the options that the flags leave open from a preset.
func (o *options) readPreset(flags *pflag.FlagSet) error {
	if o.file != "" {
		return failure.New(failure.Usage, "`kubectl inference bench plan --preset NAME -o yaml` shows what a preset holds", "read --preset: the cases come from the file %s", o.file)
	}
	if !slices.Contains(presetNames(), o.preset) {
		return failure.New(failure.Usage, "the presets are "+strings.Join(presetNames(), ", "), "read --preset: there is no preset %q", o.preset)
	}
	for _, name := range loadFlags {
		if flags.Changed(name) {
			return failure.New(failure.Usage, "leave it out, or leave the preset out; --duration, --warmup, --stream and --slo go with a preset", "read --%s: the cases come from the preset %s", name, o.preset)
		}
	}
	data, err := presets.ReadFile("presets/" + o.preset + ".yaml")
	if err != nil {
		return err
	}
	if err := o.take(flags, data, "preset "+o.preset); err != nil {
		return err
	}
	if flags.Changed("stream") {
		for i := range o.loads {
			o.loads[i].Stream = nil
		}
	}
	return nil
}

// benchProfile is what the plan says about its purpose, nil for nothing.
func (o *options) benchProfile() (*record.BenchProfile, error) {
	if o.profile == nil && len(o.engine) == 0 {
		return nil, nil
	}
	var made record.BenchProfile
	if o.profile != nil {
		made = record.BenchProfile(*o.profile)
	}
	if len(o.engine) == 0 {
		return &made, nil
	}
	var engine record.EngineSettings
	if made.Engine != nil {
		engine = *made.Engine
	}
	for _, text := range o.engine {
		if err := engine.Set(text); err != nil {
			return nil, err
		}
	}
	made.Engine = &engine
	return &made, nil
}
