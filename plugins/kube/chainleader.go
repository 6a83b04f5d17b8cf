package kube

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
)

// FetchLeader adds the Lease of the HPA controller: since when it remembers.
// Providers that run the control plane may hide it.
func (f *Factory) FetchLeader(ctx context.Context, fetched *FetchedChains) error {
	client, err := f.Dynamic()
	if err != nil {
		return err
	}
	leases := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	lease, err := client.Resource(leases).Namespace(chain.LeaderNamespace).Get(ctx, chain.LeaderName, metav1.GetOptions{})
	consequence := ": since when the controller remembers is unknown"
	unread := record.UnreadInput{
		Input: "lease", Verb: "get", Resource: "leases.coordination.k8s.io", Namespace: chain.LeaderNamespace,
		Message: "cannot get leases.coordination.k8s.io in " + chain.LeaderNamespace + consequence,
	}
	switch {
	case apierrors.IsForbidden(err):
		fetched.Unread = append(fetched.Unread, unread)
		return nil
	case apierrors.IsNotFound(err):
		unread.Message = "there is no lease " + chain.LeaderName + " in " + chain.LeaderNamespace + consequence
		fetched.Unread = append(fetched.Unread, unread)
		return nil
	case err != nil:
		return Explain(err, "get lease %s/%s", chain.LeaderNamespace, chain.LeaderName)
	}
	var objects chain.Objects
	if err := AddToChains(&objects, lease); err != nil {
		return failure.New(failure.Failed, "", "%w", err)
	}
	fetched.Raw, fetched.Leader = append(fetched.Raw, *lease), objects.Leader
	return nil
}
