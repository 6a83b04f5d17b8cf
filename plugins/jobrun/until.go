package jobrun

import (
	"context"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Until starts the Job of spec and follows it until it reports an event of that
// name; the Job goes on. A Job that ends before is an error.
func Until(ctx context.Context, factory *kube.Factory, spec Spec, event string, observer Observer) error {
	client, err := factory.Clientset()
	if err != nil {
		return err
	}
	jobs := newJobs(client)
	started, err := jobs.Start(ctx, spec, true)
	if err != nil {
		return err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	seen := false
	_, err = jobs.Follow(following, started.Job, until{observer, func(one record.Event) {
		if one.Name == event {
			seen = true
			stop()
		}
	}})
	switch {
	case seen:
		return nil
	case err == nil:
		return failure.New(failure.Failed, "", "run job/%s in namespace %s: it has ended already", spec.Name(), spec.Namespace)
	}
	return err
}

// until listens along.
type until struct {
	Observer
	hear func(record.Event)
}

func (u until) Event(event record.Event) {
	u.Observer.Event(event)
	u.hear(event)
}

// Remove deletes the Job of spec with its pods; one that is not there is no
// error.
func Remove(ctx context.Context, factory *kube.Factory, spec Spec) error {
	client, err := factory.Clientset()
	if err != nil {
		return err
	}
	job, err := client.BatchV1().Jobs(spec.Namespace).Get(ctx, spec.Name(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return kube.Explain(err, "get job %s/%s", spec.Namespace, spec.Name())
	}
	return newJobs(client).remove(ctx, job)
}

// UnderWay says whether the Job of spec is there and has not ended.
func UnderWay(ctx context.Context, factory *kube.Factory, spec Spec) (bool, error) {
	client, err := factory.Clientset()
	if err != nil {
		return false, err
	}
	job, err := client.BatchV1().Jobs(spec.Namespace).Get(ctx, spec.Name(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, kube.Explain(err, "get job %s/%s", spec.Namespace, spec.Name())
	}
	return ended(job) == nil && job.DeletionTimestamp == nil, nil
}
