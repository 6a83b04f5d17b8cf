package jobrun

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// PlacementFlags say on which nodes a Job runs.
type PlacementFlags struct {
	NodeSelector map[string]string
	Tolerations  []string

	tolerations []corev1.Toleration
}

// AddFlags adds the flags to cmd.
func (f *PlacementFlags) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringToStringVar(&f.NodeSelector, "node-selector", nil, "labels of the nodes that the Job may run on, as KEY=VALUE")
	flags.StringArrayVar(&f.Tolerations, "toleration", nil, "taint that the Job tolerates, as KEY, KEY=VALUE or either with :EFFECT (repeatable)")
}

// Validate reads the tolerations.
func (f *PlacementFlags) Validate() error {
	for key, value := range f.NodeSelector {
		if problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(problems) > 0 {
			return failure.New(failure.Usage, "", "read --node-selector: %s=%s: %s", key, value, strings.Join(problems, "; "))
		}
	}
	f.tolerations = nil
	for _, text := range f.Tolerations {
		toleration, err := parseToleration(text)
		if err != nil {
			return failure.New(failure.Usage, "write it as KEY=VALUE:NoSchedule; the effects are NoSchedule, PreferNoSchedule and NoExecute", "read --toleration: %w", err)
		}
		f.tolerations = append(f.tolerations, toleration)
	}
	return nil
}

func parseToleration(text string) (corev1.Toleration, error) {
	taint, effect, _ := strings.Cut(text, ":")
	key, value, equal := strings.Cut(taint, "=")
	toleration := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffect(effect)}
	if equal {
		toleration.Operator, toleration.Value = corev1.TolerationOpEqual, value
	}
	switch toleration.Effect {
	case "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		return corev1.Toleration{}, fmt.Errorf("%q has no such effect as %q", text, effect)
	}
	if problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(problems) > 0 {
		return corev1.Toleration{}, fmt.Errorf("%q: %s", text, strings.Join(problems, "; "))
	}
	return toleration, nil
}

// Apply copies the flags into spec.
func (f *PlacementFlags) Apply(spec *Spec) {
	spec.NodeSelector, spec.Tolerations = f.NodeSelector, f.tolerations
}
