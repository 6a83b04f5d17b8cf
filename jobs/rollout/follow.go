package rollout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/podstate"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// fatalRestarts is how often a pod may crash before the rollout has failed.
const fatalRestarts = 3

// follow waits until the Deployment serves its newest template on all its
// replicas. It goes by the Deployment and its pods: an InferenceService says
// Ready while its rollout is stuck.
func (r *run) follow(ctx context.Context) ([]corev1.Pod, error) {
	seen := map[string]bool{}
	last := "no Deployment yet"
	for {
		deployment, pods, err := r.look(ctx)
		var found []string
		switch {
		case failure.KindOf(err) == failure.Denied:
			return nil, err
		// Loading takes long enough to outlast a restart of the API server.
		case err != nil && ctx.Err() == nil:
			found = []string{err.Error()}
		case deployment != nil:
			own := r.own(pods)
			if err := r.crashing(own); err != nil {
				return nil, err
			}
			last = "its pods are not ready yet"
			found = append(refusals(deployment), reasons(own)...)
		}
		for _, reason := range found {
			last = reason
			if !seen[reason] {
				seen[reason] = true
				r.deps.Emit(record.Event{Time: r.deps.Now(), Level: record.Warning, Name: "waiting", Message: reason})
			}
		}
		if deployment != nil {
			ready, wanted := progress(deployment)
			part, total := float64(ready), float64(wanted)
			r.deps.Emit(record.Event{Time: r.deps.Now(), Name: record.EventProgress, Done: &part, Total: &total, Unit: "replicas",
				Message: fmt.Sprintf("%d of %d replicas ready after %.0f s", ready, wanted, r.deps.Now().Sub(r.started).Seconds())})
			done := settled(deployment) && r.current(deployment)
			if done && wanted == 0 {
				return nil, failure.New(failure.Differs, "scale it up, or set minReplicaCount of its ScaledObject to 1",
					"roll out %s: Deployment %s is scaled to 0 replicas, so nothing starts", r.plan.Name, deployment.Name)
			}
			if done {
				return pods, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, r.timeout(ctx.Err(), last)
		case <-time.After(r.deps.Poll):
		}
	}
}

// refusals says why the API server makes no pods of the Deployment: a quota, Pod
// Security, a ServiceAccount that is not there. No pod can tell it.
func refusals(deployment *appsv1.Deployment) []string {
	for _, condition := range deployment.Status.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			return []string{fmt.Sprintf("the pods of Deployment %s cannot be made: %s", deployment.Name, condition.Message)}
		}
	}
	return nil
}

func (r *run) timeout(err error, last string) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return failure.New(failure.Timeout, "give it longer with --rollout-timeout", "roll out %s: not ready after %.0f s: %s", r.plan.Name, r.plan.TimeoutSeconds, last)
	}
	return err
}

// look gets the Deployment and its pods, newest last. Both are nil before the
// Deployment exists.
func (r *run) look(ctx context.Context) (*appsv1.Deployment, []corev1.Pod, error) {
	which := metav1.ListOptions{LabelSelector: labels.SelectorFromSet(r.plan.Workload).String()}
	if r.plan.Deployment != "" {
		which = metav1.ListOptions{FieldSelector: "metadata.name=" + r.plan.Deployment}
	}
	deployments, err := r.deps.Client.AppsV1().Deployments(r.plan.Namespace).List(ctx, which)
	if err != nil {
		return nil, nil, readError(err, "list deployments in "+r.plan.Namespace)
	}
	if len(deployments.Items) == 0 {
		return nil, nil, nil
	}
	deployment := &deployments.Items[0]
	pods, err := r.deps.Client.CoreV1().Pods(r.plan.Namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(deployment.Spec.Selector)})
	if err != nil {
		return nil, nil, readError(err, "list pods in "+r.plan.Namespace)
	}
	alive := slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	slices.SortFunc(alive, func(a, b corev1.Pod) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return deployment, alive, nil
}

func readError(err error, act string) error {
	if apierrors.IsForbidden(err) {
		return failure.New(failure.Denied, grantHint, "%s: %w", act, err)
	}
	return fmt.Errorf("%s: %w", act, err)
}

func reasons(pods []corev1.Pod) []string {
	var all []string
	for i := range pods {
		if reason := podstate.Waiting(&pods[i]); reason != "" {
			all = append(all, reason)
		}
	}
	return all
}

// own returns the pods whose fate is this rollout's. Those of the template
// before it may crash: they are what is being replaced.
func (r *run) own(pods []corev1.Pod) []corev1.Pod {
	if !r.changed {
		return pods
	}
	return slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return !r.isNew(&pod) })
}

// isNew says whether the pod was made since the rollout began; its time of
// creation has whole seconds.
func (r *run) isNew(pod *corev1.Pod) bool {
	return !pod.CreationTimestamp.Time.Before(r.started.Truncate(time.Second))
}

// crashing ends the rollout where a pod keeps crashing.
func (r *run) crashing(pods []corev1.Pod) error {
	for i := range pods {
		if crash := podstate.Crashing(&pods[i], fatalRestarts); crash != "" {
			return failure.New(failure.Failed, "`kubectl logs -n "+r.plan.Namespace+" "+pods[i].Name+" --previous` shows why", "roll out %s: %s", r.plan.Name, crash)
		}
	}
	return nil
}

func progress(deployment *appsv1.Deployment) (ready, wanted int32) {
	wanted = 1
	if deployment.Spec.Replicas != nil {
		wanted = *deployment.Spec.Replicas
	}
	return min(deployment.Status.AvailableReplicas, deployment.Status.UpdatedReplicas), wanted
}

// settled is the rule of `kubectl rollout status`.
func settled(deployment *appsv1.Deployment) bool {
	ready, wanted := progress(deployment)
	status := deployment.Status
	return status.ObservedGeneration >= deployment.Generation && status.UpdatedReplicas == wanted &&
		status.Replicas == wanted && ready == wanted
}

// current says whether the Deployment is the one of the plan. Where a
// controller makes it, the one before is still there, and settled, for a moment
// after the plan was applied.
func (r *run) current(deployment *appsv1.Deployment) bool {
	if r.plan.Deployment != "" {
		return true
	}
	template, err := json.Marshal(deployment.Spec.Template.Spec)
	return err == nil && bytes.Contains(template, []byte(r.plan.Model.URI)) && bytes.Contains(template, []byte(r.image))
}
