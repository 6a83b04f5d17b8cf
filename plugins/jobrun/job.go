// Package jobrun is the edge to the plugin's in-cluster Jobs: it creates them
// from one template, follows them until they end, and lets a user leave and
// come back. A Job carries its whole plan in its own spec, so what runs is what
// was shown.
package jobrun

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/manifests"
)

// PlanEnv is the environment variable that carries the plan into the pod.
const PlanEnv = "INFERENCE_PLAN"

// Labels of the plugin's Jobs and their pods.
const (
	LabelComponent = "app.kubernetes.io/component"
	LabelName      = "app.kubernetes.io/name"
	LabelRun       = "kubectl-inference.io/run"
)

// container is the name of the template's only container.
const container = "job"

// maxName is the longest name of a Job in bytes: the name becomes the value of
// a label on its pods.
const maxName = validation.LabelValueMaxLength

// SecretEnv is an environment variable whose value comes from a Secret, so that
// no credential stands in a Job's spec.
type SecretEnv struct {
	Name   string
	Secret string
	Key    string
}

// Spec says what a Job runs. Command is the subcommand of inference-job and
// names the run's ServiceAccount, inference-COMMAND, unless one is given.
type Spec struct {
	Command        string
	Run            string
	Namespace      string
	Image          string
	PullSecret     string
	ServiceAccount string
	Plan           any
	SecretEnv      []SecretEnv
	// CallsAPI mounts the ServiceAccount's token.
	CallsAPI bool
	// Retries is how often a failed pod is replaced.
	Retries int32
}

// Name returns the Job's name: deterministic, so that the same run is found
// again rather than started twice. Of a name that would be too long, the end
// gives way to a digest of the whole.
func (s Spec) Name() string {
	name := fmt.Sprintf("inference-%s-%s", s.Command, s.Run)
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	digest := hex.EncodeToString(sum[:4])
	return strings.TrimRight(name[:maxName-len(digest)-1], "-.") + "-" + digest
}

// ValidateRun refuses a name that cannot name a run: it is part of the names of
// objects and the value of a label.
func ValidateRun(run string) error {
	problems := validation.IsDNS1123Subdomain(run)
	if len(run) > maxName {
		problems = append(problems, validation.MaxLenError(maxName))
	}
	if len(problems) > 0 {
		return failure.New(failure.Usage, "use lower-case letters, digits and hyphens", "read the name of the run: %q: %s", run, strings.Join(problems, "; "))
	}
	return nil
}

// Job builds the Job from the template in manifests/jobs.
func (s Spec) Job() (*batchv1.Job, error) {
	if err := ValidateRun(s.Run); err != nil {
		return nil, err
	}
	data, err := fs.ReadFile(manifests.Files, path.Join("jobs", "job.yaml"))
	if err != nil {
		return nil, err
	}
	var job batchv1.Job
	if err := yaml.UnmarshalStrict(data, &job); err != nil {
		return nil, fmt.Errorf("read job template: %w", err)
	}
	plan, err := json.Marshal(s.Plan)
	if err != nil {
		return nil, fmt.Errorf("write plan: %w", err)
	}
	job.Name, job.Namespace = s.Name(), s.Namespace
	for _, labels := range []map[string]string{job.Labels, job.Spec.Template.Labels} {
		labels[LabelComponent] = s.Command
		labels[LabelRun] = s.Run
	}
	job.Spec.BackoffLimit = &s.Retries
	pod := &job.Spec.Template.Spec
	pod.ServiceAccountName = s.ServiceAccount
	if pod.ServiceAccountName == "" {
		pod.ServiceAccountName = "inference-" + s.Command
	}
	pod.AutomountServiceAccountToken = &s.CallsAPI
	if s.PullSecret != "" {
		pod.ImagePullSecrets = []corev1.LocalObjectReference{{Name: s.PullSecret}}
	}
	main := &pod.Containers[0]
	main.Image = s.Image
	main.Args = []string{s.Command}
	main.Env = s.env(string(plan))
	return &job, nil
}

func (s Spec) env(plan string) []corev1.EnvVar {
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
	}
	// Kubernetes expands $(NAME) in the value of a variable, and takes $$ for $;
	// the plan is to arrive as it is.
	env := []corev1.EnvVar{
		{Name: PlanEnv, Value: strings.ReplaceAll(plan, "$", "$$")},
		{Name: "JOB_NAME", Value: s.Name()},
		{Name: "TERMINATION_MESSAGE", Value: corev1.TerminationMessagePathDefault},
		field("JOB_UID", "metadata.labels['batch.kubernetes.io/controller-uid']"),
		field("POD_NAMESPACE", "metadata.namespace"),
		field("POD_NAME", "metadata.name"),
	}
	fixed := len(env)
	for _, secret := range s.SecretEnv {
		env = append(env, corev1.EnvVar{Name: secret.Name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: secret.Secret}, Key: secret.Key,
		}}})
	}
	slices.SortFunc(env[fixed:], func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
	return env
}

// planOf returns the plan that a Job carries, as it stands in its spec.
func planOf(job *batchv1.Job) string {
	for _, c := range job.Spec.Template.Spec.Containers {
		for _, variable := range c.Env {
			if variable.Name == PlanEnv {
				return variable.Value
			}
		}
	}
	return ""
}
