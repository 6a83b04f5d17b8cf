package jobrun

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// SecretEnv is an environment variable whose value comes from a Secret, so that
// no credential stands in a Job's spec.
type SecretEnv struct {
	Name   string
	Secret string
	Key    string
}

// ConfigEnv is an environment variable whose value comes from a ConfigMap.
type ConfigEnv struct {
	Name      string
	ConfigMap string
	Key       string
}

// set gives the Job's process a variable that is no secret.
func (s *Spec) set(name, value string) {
	if s.Env == nil {
		s.Env = make(map[string]string)
	}
	s.Env[name] = value
}

// literal is a value that Kubernetes passes as it is: it expands $(NAME) in
// the value of a variable, and takes $$ for $.
func literal(value string) string { return strings.ReplaceAll(value, "$", "$$") }

// env returns the variables of the Job's process, what every Job has first and
// the rest by name.
func (s Spec) env(plan string, memoryLimit int64) []corev1.EnvVar {
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
	}
	env := []corev1.EnvVar{
		{Name: PlanEnv, Value: literal(plan)},
		{Name: "JOB_NAME", Value: s.Name()},
		{Name: "TERMINATION_MESSAGE", Value: corev1.TerminationMessagePathDefault},
		field("JOB_UID", "metadata.labels['batch.kubernetes.io/controller-uid']"),
		field("POD_NAMESPACE", "metadata.namespace"),
		field("POD_NAME", "metadata.name"),
	}
	if memoryLimit > 0 {
		// The collector works harder before the kernel kills.
		env = append(env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: strconv.FormatInt(memoryLimit/10*9, 10)})
	}
	fixed := len(env)
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		value := literal(s.Env[name])
		if name == keyNoProxy {
			// The API server's address, which Kubernetes puts in.
			value += ",$(KUBERNETES_SERVICE_HOST)"
		}
		env = append(env, corev1.EnvVar{Name: name, Value: value})
	}
	if s.MetricsPort > 0 {
		env = append(env, corev1.EnvVar{Name: MetricsEnv, Value: fmt.Sprintf(":%d", s.MetricsPort)})
	}
	for _, secret := range s.SecretEnv {
		env = append(env, corev1.EnvVar{Name: secret.Name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: secret.Secret}, Key: secret.Key,
		}}})
	}
	for _, config := range s.ConfigEnv {
		env = append(env, corev1.EnvVar{Name: config.Name, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: config.ConfigMap}, Key: config.Key,
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
