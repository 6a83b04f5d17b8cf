package tune

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
)

// carryOut shows the plan, and makes the change when --apply says so.
func (o *options) carryOut(ctx context.Context, proposal record.TuningPlan) error {
	diff := ""
	if len(proposal.Patch) > 0 {
		before, err := o.get(ctx, chain.Ref{APIVersion: proposal.Owner.APIVersion, Kind: proposal.Owner.Kind, Namespace: proposal.Owner.Namespace, Name: proposal.Owner.Name})
		if err != nil {
			return err
		}
		after, err := o.patch(ctx, proposal, true)
		switch {
		// Who may not change it may still read the proposal.
		case err != nil && !o.apply && failure.KindOf(err) == failure.Denied:
			o.streams.Warn("the change was not tried on the server: %v", err)
		case err != nil:
			return err
		default:
			if diff, err = output.Diff(proposal.Owner.Kind+"/"+proposal.Owner.Name, before, after); err != nil {
				return err
			}
		}
	}
	if o.apply && len(proposal.Patch) > 0 {
		if proposal.Managed != "" && !o.managed {
			fmt.Fprint(o.streams.Err, output.ColorDiff(diff))
			return failure.New(failure.Usage, "commit the difference above there; or add --even-if-managed", "apply: %s %s is kept by %s, which would write over it", proposal.Owner.Kind, proposal.Owner.Name, proposal.Managed)
		}
		if _, err := o.patch(ctx, proposal, false); err != nil {
			return err
		}
	}
	if err := o.out.Print(o.streams.Out, proposal, func(w io.Writer) error { return render(w, proposal, diff, o.apply) }); err != nil {
		return err
	}
	if !o.apply || len(proposal.Patch) == 0 {
		return nil
	}
	return o.settle(ctx, proposal)
}

// patch sends the plan's JSON patch, and returns the object as it is then.
func (o *options) patch(ctx context.Context, proposal record.TuningPlan, dryRun bool) (*unstructured.Unstructured, error) {
	owner := proposal.Owner
	resource, err := o.resource(owner.APIVersion, owner.Kind, owner.Namespace)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(proposal.Patch)
	if err != nil {
		return nil, err
	}
	options := metav1.PatchOptions{FieldManager: kube.FieldManager}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	patched, err := resource.Patch(ctx, owner.Name, types.JSONPatchType, data, options)
	switch {
	// The API server reports a failed test as an invalid request without a cause.
	case apierrors.IsInvalid(err) && len(kube.Causes(err)) == 0:
		return nil, failure.New(failure.Differs, o.lookAgain(owner), "patch %s %s/%s: the trigger is not as it was when the plan was made", owner.Kind, owner.Namespace, owner.Name)
	case err != nil:
		return nil, kube.Explain(err, "patch %s %s/%s", owner.Kind, owner.Namespace, owner.Name)
	}
	return patched, nil
}

// lookAgain says how to see what a plan no longer fits.
func (o *options) lookAgain(owner record.TuningObject) string {
	if o.undo == "" {
		return "run the command again: it plans anew from what is there now"
	}
	return fmt.Sprintf("it was changed since, or taken back already: `kubectl get %s %s -n %s -o yaml` shows it", strings.ToLower(owner.Kind), owner.Name, owner.Namespace)
}
