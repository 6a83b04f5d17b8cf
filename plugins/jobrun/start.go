package jobrun

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
)

// pollInterval is how often the Job and its pods are read. Polling, because a
// watch has to survive expiry, proxies and restarts of the API server, and one
// read a second is nothing.
const pollInterval = time.Second

// Jobs is the edge to the Jobs of one cluster.
type Jobs struct {
	Client kubernetes.Interface
	// Poll is the time between two reads of what is waited for.
	Poll time.Duration
}

func newJobs(client kubernetes.Interface) Jobs { return Jobs{Client: client, Poll: pollInterval} }

// Started says what Start found.
type Started struct {
	Job *batchv1.Job
	// Attached is true when the same run was under way already.
	Attached bool
}

// Start creates the Job of spec. When the same run is under way already, it is
// left alone and returned; with another plan it is another run, and an error.
// An ended Job of the same name is replaced when again is true, and is an error
// otherwise.
func (j Jobs) Start(ctx context.Context, spec Spec, again bool) (Started, error) {
	job, err := spec.Job()
	if err != nil {
		return Started{}, err
	}
	if err := j.preflight(ctx, spec, job); err != nil {
		return Started{}, err
	}
	created, err := j.create(ctx, job)
	if !apierrors.IsAlreadyExists(err) {
		return Started{Job: created}, err
	}
	existing, err := j.Client.BatchV1().Jobs(job.Namespace).Get(ctx, job.Name, metav1.GetOptions{})
	if err != nil {
		return Started{}, kube.Explain(err, "get job %s/%s", job.Namespace, job.Name)
	}
	switch {
	// Somebody removed it; only its name is not free yet.
	case existing.DeletionTimestamp != nil:
	case ended(existing) == nil && planOf(existing) != planOf(job):
		return Started{}, failure.New(failure.Usage, fmt.Sprintf("follow that one: %s\nstop it: %s", attachCommand(spec), cancelCommand(spec)),
			"create job %s/%s: a run of that name is under way with another plan", job.Namespace, job.Name)
	case ended(existing) == nil:
		return Started{Job: existing, Attached: true}, nil
	case !again:
		return Started{}, failure.New(failure.Usage, fmt.Sprintf("choose another --name, or remove it and its result: %s", cancelCommand(spec)),
			"create job %s/%s: a run of that name has ended already", job.Namespace, job.Name)
	}
	if err := j.remove(ctx, existing); err != nil {
		return Started{}, err
	}
	created, err = j.create(ctx, job)
	return Started{Job: created}, err
}

func (j Jobs) create(ctx context.Context, job *batchv1.Job) (*batchv1.Job, error) {
	created, err := j.Client.BatchV1().Jobs(job.Namespace).Create(ctx, job, metav1.CreateOptions{FieldManager: kube.FieldManager})
	if err != nil {
		return nil, kube.Explain(err, "create job %s/%s", job.Namespace, job.Name)
	}
	return created, nil
}

// remove deletes a Job with its pods and waits until its name is free.
func (j Jobs) remove(ctx context.Context, job *batchv1.Job) error {
	jobs := j.Client.BatchV1().Jobs(job.Namespace)
	background := metav1.DeletePropagationBackground
	err := jobs.Delete(ctx, job.Name, metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &job.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return kube.Explain(err, "delete job %s/%s", job.Namespace, job.Name)
	}
	for {
		found, err := jobs.Get(ctx, job.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || (err == nil && found.UID != job.UID) {
			return nil
		}
		if err != nil {
			return kube.Explain(err, "get job %s/%s", job.Namespace, job.Name)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(j.Poll):
		}
	}
}

// ended returns the condition that ended the Job, or nil while it runs.
func ended(job *batchv1.Job) *batchv1.JobCondition {
	for i, condition := range job.Status.Conditions {
		if condition.Status == corev1.ConditionTrue && (condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed) {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}
