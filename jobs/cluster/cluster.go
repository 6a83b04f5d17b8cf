// Package cluster is the Kubernetes API as a Job sees it from inside its pod.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// FieldManager is the name under which Jobs write.
const FieldManager = "kubectl-inference"

// Pod is who the process is, from the environment that the plugin gives it.
type Pod struct {
	Namespace string
	Name      string
	Job       string
	JobUID    string
}

// Here reads the Pod from the environment. ok is false outside a Job.
func Here(getenv func(string) string) (pod Pod, ok bool) {
	pod = Pod{Namespace: getenv("POD_NAMESPACE"), Name: getenv("POD_NAME"), Job: getenv("JOB_NAME"), JobUID: getenv("JOB_UID")}
	return pod, pod.Namespace != "" && pod.Job != "" && pod.JobUID != ""
}

// Config returns the client configuration of the pod's ServiceAccount.
func Config() (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, failure.New(failure.Usage, "run it as a Job that mounts its ServiceAccount's token", "reach the Kubernetes API: %w", err)
	}
	config.UserAgent = FieldManager
	return config, nil
}

// ErrTooLarge is the error of a document that no ConfigMap holds.
var ErrTooLarge = errors.New("it is larger than a ConfigMap can be")

// Save writes document as JSON into the ConfigMap name under key; one that is
// large is compressed (Document reads both). The ConfigMap
// belongs to the pod's Job and goes with it, unless keep is true. The error is
// a failure.Denied, with the command that mends it, where it is not permitted. A
// result can be hours of work: an API server that is away for a while is asked
// again, as long as ctx lasts and saveTime at most.
func Save(ctx context.Context, client kubernetes.Interface, pod Pod, name, key string, document any, keep bool) error {
	data, err := record.Encode(document)
	if err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	text, binary, ok := pack(key, data)
	if !ok {
		return fmt.Errorf("save configmap %s/%s: %w", pod.Namespace, name, ErrTooLarge)
	}
	configMap := applycore.ConfigMap(name, pod.Namespace).
		WithLabels(map[string]string{"app.kubernetes.io/name": "kubectl-inference", "app.kubernetes.io/managed-by": "kubectl-inference"}).
		WithData(text).WithBinaryData(binary)
	if !keep {
		configMap = configMap.WithOwnerReferences(applymeta.OwnerReference().
			WithAPIVersion("batch/v1").WithKind("Job").WithName(pod.Job).WithUID(types.UID(pod.JobUID)))
	}
	err = insist(ctx, func() error {
		_, err := client.CoreV1().ConfigMaps(pod.Namespace).Apply(ctx, configMap, metav1.ApplyOptions{FieldManager: FieldManager, Force: true})
		return err
	})
	if apierrors.IsForbidden(err) {
		return denied(pod, "save", name, err)
	}
	if err != nil {
		return fmt.Errorf("save configmap %s/%s: %w", pod.Namespace, name, err)
	}
	return nil
}

const (
	saveTime  = 5 * time.Minute
	firstWait = 200 * time.Millisecond
	mostWait  = 15 * time.Second
)

// insist repeats an act until it succeeds or its error is one that comes again:
// the server has looked at the request and refused it.
func insist(ctx context.Context, act func() error) error {
	policy := backoff.NewExponentialBackOff()
	policy.InitialInterval, policy.MaxInterval = firstWait, mostWait
	var last error
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		last = act()
		if last != nil && final(last) {
			return struct{}{}, backoff.Permanent(last)
		}
		return struct{}{}, last
	}, backoff.WithBackOff(policy), backoff.WithMaxElapsedTime(saveTime))
	if err != nil && last != nil {
		// Why it did not work says more than that the time is over.
		return last
	}
	return err
}

func final(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsUnsupportedMediaType(err)
}
