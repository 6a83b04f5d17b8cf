package jobrun

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
)

// preflight finds what would leave the pod waiting for ever: a Job's controller
// reports a missing ServiceAccount or Secret only in events. Not being allowed
// to look is no reason not to try.
func (j Jobs) preflight(ctx context.Context, spec Spec, job *batchv1.Job) error {
	account := job.Spec.Template.Spec.ServiceAccountName
	rbac := "rbac/" + spec.Command
	if account == "inference-sync" {
		// The commands on a bucket share the sync's identity.
		rbac = "rbac/sync"
	}
	if spec.Command == "hold" {
		rbac = "hold/rbac"
	}
	_, err := j.Client.CoreV1().ServiceAccounts(job.Namespace).Get(ctx, account, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		if err := j.namespace(ctx, job); err != nil {
			return err
		}
		return failure.New(failure.NotFound,
			fmt.Sprintf("create it with the least rights it needs: `kubectl inference manifests %s | kubectl apply -n %s -f -`\nor name another with --service-account", rbac, job.Namespace),
			"start job %s: there is no ServiceAccount %s/%s", job.Name, job.Namespace, account)
	case err != nil && !apierrors.IsForbidden(err):
		return kube.Explain(err, "get serviceaccount %s/%s", job.Namespace, account)
	}
	for _, name := range secretsOf(spec) {
		if err := j.secret(ctx, spec, job, name); err != nil {
			return err
		}
	}
	for _, env := range spec.ConfigEnv {
		if err := j.configMap(ctx, job, env); err != nil {
			return err
		}
	}
	return nil
}

// namespace tells a missing namespace from what is missing in it.
func (j Jobs) namespace(ctx context.Context, job *batchv1.Job) error {
	_, err := j.Client.CoreV1().Namespaces().Get(ctx, job.Namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return failure.New(failure.NotFound, fmt.Sprintf("create it: `kubectl create namespace %s`\nor name another with -n", job.Namespace),
			"start job %s: there is no namespace %s", job.Name, job.Namespace)
	}
	return nil
}

// secretsOf returns the names of the Secrets of spec, each once.
func secretsOf(spec Spec) []string {
	var names []string
	for _, env := range spec.SecretEnv {
		if !slices.Contains(names, env.Secret) {
			names = append(names, env.Secret)
		}
	}
	return names
}

// secret checks one Secret for all keys that are needed of it at once.
func (j Jobs) secret(ctx context.Context, spec Spec, job *batchv1.Job, name string) error {
	var keys []string
	for _, env := range spec.SecretEnv {
		if env.Secret == name && !slices.Contains(keys, env.Key) {
			keys = append(keys, env.Key)
		}
	}
	slices.Sort(keys)
	secret, err := j.Client.CoreV1().Secrets(job.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return failure.New(failure.NotFound, fmt.Sprintf("create it: `kubectl create secret generic %s -n %s%s`", name, job.Namespace, literals(keys)),
			"start job %s: there is no Secret %s/%s", job.Name, job.Namespace, name)
	case apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return kube.Explain(err, "get secret %s/%s", job.Namespace, name)
	}
	return lacks(job, "Secret", name, keys, secret.Data)
}

func literals(keys []string) string {
	var text strings.Builder
	for _, key := range keys {
		fmt.Fprintf(&text, " --from-literal=%s=...", key)
	}
	return text.String()
}

// lacks says which of the keys an object does not have, which all are needed,
// and which are there instead.
func lacks[V any](job *batchv1.Job, kind, name string, keys []string, data map[string]V) error {
	var missing []string
	for _, key := range keys {
		if _, ok := data[key]; !ok {
			missing = append(missing, key)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	has := "it has none"
	if found := slices.Sorted(maps.Keys(data)); len(found) > 0 {
		has = "it has " + strings.Join(found[:min(len(found), 8)], ", ")
	}
	return failure.New(failure.NotFound, fmt.Sprintf("it needs the keys %s; %s", strings.Join(keys, ", "), has),
		"start job %s: %s %s/%s has no key %s", job.Name, kind, job.Namespace, name, strings.Join(missing, " and no "))
}

// configMap checks a ConfigMap of certificates.
func (j Jobs) configMap(ctx context.Context, job *batchv1.Job, env ConfigEnv) error {
	found, err := j.Client.CoreV1().ConfigMaps(job.Namespace).Get(ctx, env.ConfigMap, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return failure.New(failure.NotFound, fmt.Sprintf("create it: `kubectl create configmap %s -n %s --from-file=%s=FILE`", env.ConfigMap, job.Namespace, env.Key),
			"start job %s: there is no ConfigMap %s/%s", job.Name, job.Namespace, env.ConfigMap)
	case apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return kube.Explain(err, "get configmap %s/%s", job.Namespace, env.ConfigMap)
	}
	if err := lacks(job, "ConfigMap", env.ConfigMap, []string{env.Key}, found.Data); err != nil {
		return err
	}
	if env.Name == CAEnv {
		if err := checkPEM([]byte(found.Data[env.Key])); err != nil {
			return failure.New(failure.Usage, "keep your own authority's certificates alone in it; the public ones are built in",
				"start job %s: key %s of ConfigMap %s/%s: %w", job.Name, env.Key, job.Namespace, env.ConfigMap, err)
		}
	}
	return nil
}
