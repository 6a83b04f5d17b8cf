package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

var quick = LeaseTimes{Duration: 3 * time.Second, Renew: 2 * time.Second, Retry: 200 * time.Millisecond}

func jobPod(job string) Pod {
	return Pod{Namespace: "default", Name: job + "-x", Job: job, JobUID: "00000000-0000-0000-0000-00000000000" + job[len(job)-1:]}
}

// A second Job waits until the first is done; a pod in the place of another of
// its Job does not.
func TestHold(t *testing.T) {
	admin := client(t, apiserver.Admin)
	silent := func(string) {}
	release, err := Hold(t.Context(), admin, jobPod("job-1"), "order", quick, silent)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := admin.CoordinationV1().Leases("default").Get(t.Context(), "order", metav1.GetOptions{})
	if err != nil || len(lease.OwnerReferences) != 1 || lease.OwnerReferences[0].Name != "job-1" {
		t.Errorf("lease %+v, %v", lease, err)
	}
	heard := make(chan string, 1)
	held := make(chan error, 1)
	go func() {
		second, err := Hold(t.Context(), admin, jobPod("job-2"), "order", quick, func(holder string) {
			select {
			case heard <- holder:
			default:
			}
		})
		if err == nil {
			second()
		}
		held <- err
	}()
	if holder := <-heard; !strings.HasPrefix(holder, "job-1 ") {
		t.Errorf("waits for %q", holder)
	}
	again, err := Hold(t.Context(), admin, jobPod("job-1"), "order", quick, silent)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-held:
		t.Fatalf("the second did not wait: %v", err)
	case <-time.After(2 * quick.Retry):
	}
	again()
	release()
	if err := <-held; err != nil {
		t.Error(err)
	}
}

// The holder's pod was killed: nobody renews, and the Lease runs out.
func TestHoldAfterADeath(t *testing.T) {
	admin := client(t, apiserver.Admin)
	dead := "job-3 00000000-0000-0000-0000-000000000003"
	if err := makeLease(t.Context(), admin, jobPod("job-3"), "orphan"); err != nil {
		t.Fatal(err)
	}
	lease, err := admin.CoordinationV1().Leases("default").Get(t.Context(), "orphan", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	now := metav1.NowMicro()
	lease.Spec.HolderIdentity, lease.Spec.RenewTime, lease.Spec.AcquireTime, lease.Spec.LeaseDurationSeconds = &dead, &now, &now, new(int32(3))
	if _, err := admin.CoordinationV1().Leases("default").Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	release, err := Hold(t.Context(), admin, jobPod("job-4"), "orphan", quick, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if waited := time.Since(began); waited < 2*time.Second {
		t.Errorf("took over after %s", waited)
	}
}

func TestHoldFails(t *testing.T) {
	_, err := Hold(t.Context(), client(t, apiserver.Guest), jobPod("job-5"), "denied", quick, func(string) {})
	if failure.KindOf(err) != failure.Denied || !strings.Contains(failure.HintOf(err), "manifests rbac/sync | kubectl apply -n default") {
		t.Errorf("forbidden: %v, hint %q", err, failure.HintOf(err))
	}
	admin := client(t, apiserver.Admin)
	release, err := Hold(t.Context(), admin, jobPod("job-6"), "stop", quick, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := Hold(ctx, admin, jobPod("job-7"), "stop", quick, func(string) {}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stopped: %v", err)
	}
}
