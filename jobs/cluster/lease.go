package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// LeaseTimes are those of leaderelection. A holder that died is replaced after
// Duration.
type LeaseTimes struct{ Duration, Renew, Retry time.Duration }

// DefaultLeaseTimes suit work of minutes.
var DefaultLeaseTimes = LeaseTimes{Duration: 30 * time.Second, Renew: 20 * time.Second, Retry: 3 * time.Second}

// Hold waits until this pod's Job holds the Lease name, and keeps it until
// release is called or ctx ends. waiting hears of each holder that is waited
// for. A pod that takes the place of an earlier one of its Job holds it at once.
//
// It keeps two Jobs from doing the same work and guards nothing: a pod that the
// API server cannot see for longer than the Lease lasts loses it and works on.
func Hold(ctx context.Context, client kubernetes.Interface, pod Pod, name string, times LeaseTimes, waiting func(holder string)) (release func(), err error) {
	if err := makeLease(ctx, client, pod, name); err != nil {
		return nil, err
	}
	us := pod.Job + " " + pod.JobUID
	held, ended := make(chan struct{}), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: name}, Client: client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: us},
		},
		LeaseDuration: times.Duration, RenewDeadline: times.Renew, RetryPeriod: times.Retry, ReleaseOnCancel: true, Name: name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(held) },
			OnStoppedLeading: func() {},
			OnNewLeader: func(holder string) {
				if holder != us && holder != "" {
					waiting(holder)
				}
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("hold Lease %s/%s: %w", pod.Namespace, name, err)
	}
	// Its own log would stand between our events.
	working, cancel := context.WithCancel(klog.NewContext(ctx, logr.Discard()))
	go func() {
		defer close(ended)
		elector.Run(working)
	}()
	release = func() {
		cancel()
		<-ended
	}
	select {
	case <-held:
		return release, nil
	case <-ctx.Done():
		release()
		return nil, context.Cause(ctx)
	}
}

// makeLease makes the Lease, owned by the Job so that it goes with it. That it
// is there already is fine.
func makeLease(ctx context.Context, client kubernetes.Interface, pod Pod, name string) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: pod.Namespace,
		Labels:          map[string]string{"app.kubernetes.io/name": "kubectl-inference", "app.kubernetes.io/managed-by": "kubectl-inference"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: pod.Job, UID: types.UID(pod.JobUID)}},
	}}
	_, err := client.CoordinationV1().Leases(pod.Namespace).Create(ctx, lease, metav1.CreateOptions{FieldManager: FieldManager})
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.IsForbidden(err):
		return failure.New(failure.Denied, "give the ServiceAccount of the Job what it needs: `kubectl inference manifests rbac/sync | kubectl apply -n "+pod.Namespace+" -f -`", "hold Lease %s/%s: %w", pod.Namespace, name, err)
	}
	return fmt.Errorf("hold Lease %s/%s: %w", pod.Namespace, name, err)
}
