package tune

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/plan"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
)

func (o *options) run(ctx context.Context) error {
	envelope, err := o.envelope()
	if err != nil {
		return err
	}
	input, err := o.fetch(ctx)
	if err != nil {
		return err
	}
	input.Envelope, input.Shape = envelope, o.shape
	proposal, err := plan.Make(input)
	if err != nil {
		return err
	}
	return o.carryOut(ctx, proposal)
}

// envelope reads --from.
func (o *options) envelope() (record.CapacityEnvelope, error) {
	var envelope record.CapacityEnvelope
	data, err := o.read(o.from)
	if err != nil {
		return envelope, failure.New(failure.Usage, "", "read --from: %w", err)
	}
	return envelope, record.Decode(data, record.KindCapacityEnvelope, &envelope)
}

func (o *options) read(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(o.streams.In)
	}
	return os.ReadFile(name)
}

// fetch finds the ScaledObject behind the target and the object that keeps its
// thresholds.
func (o *options) fetch(ctx context.Context) (plan.Input, error) {
	namespace, err := o.factory.Namespace()
	if err != nil {
		return plan.Input{}, err
	}
	target, err := kube.ParseTarget(o.target)
	if err != nil {
		return plan.Input{}, err
	}
	fetched, err := o.factory.FetchChains(ctx, namespace, target)
	if err != nil {
		return plan.Input{}, err
	}
	link, err := chooseChain(target, fetched.Chains)
	if err != nil {
		return plan.Input{}, err
	}
	scaledObject, err := o.get(ctx, chain.RefOfScaledObject(*link.ScaledObject))
	if err != nil {
		return plan.Input{}, err
	}
	parsed, err := keda.Parse(scaledObject.Object)
	if err != nil {
		return plan.Input{}, err
	}
	var controller map[string]any
	if ref := chain.ControllerOfScaledObject(parsed); ref != nil {
		owner, err := o.get(ctx, *ref)
		if err != nil {
			return plan.Input{}, err
		}
		controller = owner.Object
	}
	owner, err := plan.OwnerOf(scaledObject.Object, controller)
	return plan.Input{ScaledObject: parsed, Owner: owner}, err
}

// chooseChain returns the one chain with a ScaledObject.
func chooseChain(target kube.Target, chains []chain.Chain) (chain.Chain, error) {
	var scaled []chain.Chain
	var names []string
	for _, link := range chains {
		if link.ScaledObject != nil {
			scaled = append(scaled, link)
			names = append(names, "so/"+link.ScaledObject.Metadata.Name)
		}
	}
	switch len(scaled) {
	case 1:
		return scaled[0], nil
	case 0:
		return chain.Chain{}, failure.New(failure.NotFound, "see what scales it: `kubectl inference explain-scaling "+target.String()+"`", "tune %s: no ScaledObject scales it", target)
	}
	return chain.Chain{}, failure.New(failure.Usage, "tune one of them: "+strings.Join(names, ", "), "tune %s: %d ScaledObjects scale it", target, len(scaled))
}

func (o *options) get(ctx context.Context, ref chain.Ref) (*unstructured.Unstructured, error) {
	resource, err := o.resource(ref.APIVersion, ref.Kind, ref.Namespace)
	if err != nil {
		return nil, err
	}
	object, err := resource.Get(ctx, ref.Name, metav1.GetOptions{})
	return object, kube.Explain(err, "get %s %s/%s", ref.Kind, ref.Namespace, ref.Name)
}

func (o *options) resource(apiVersion, kind, namespace string) (dynamic.ResourceInterface, error) {
	group, version, _ := strings.Cut(apiVersion, "/")
	mapper, err := o.factory.Mapper()
	if err != nil {
		return nil, err
	}
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind}, versions(version)...)
	if err != nil {
		return nil, kube.Explain(err, "find %s", kind)
	}
	client, err := o.factory.Dynamic()
	if err != nil {
		return nil, err
	}
	return client.Resource(mapping.Resource).Namespace(namespace), nil
}

func versions(version string) []string {
	if version == "" {
		return nil
	}
	return []string{version}
}

// carryOut shows the plan, and makes the change when --apply says so.
func (o *options) carryOut(ctx context.Context, proposal record.TuningPlan) error {
	diff := ""
	if len(proposal.Patch) > 0 {
		before, err := o.get(ctx, chain.Ref{APIVersion: proposal.Owner.APIVersion, Kind: proposal.Owner.Kind, Namespace: proposal.Owner.Namespace, Name: proposal.Owner.Name})
		if err != nil {
			return err
		}
		after, err := o.patch(ctx, proposal, true)
		if err != nil {
			return err
		}
		if diff, err = output.Diff(proposal.Owner.Kind+"/"+proposal.Owner.Name, before, after); err != nil {
			return err
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

// patch sends the plan's JSON patch.
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
		return nil, failure.New(failure.Differs, "look again: run the same command without --apply", "patch %s %s/%s: the trigger is not as it was when the plan was made", owner.Kind, owner.Namespace, owner.Name)
	case err != nil:
		return nil, kube.Explain(err, "patch %s %s/%s", owner.Kind, owner.Namespace, owner.Name)
	}
	return patched, nil
}

func (o *options) runUndo(ctx context.Context) error {
	data, err := o.read(o.undo)
	if err != nil {
		return failure.New(failure.Usage, "", "read --undo: %w", err)
	}
	var done record.TuningPlan
	if err := record.Decode(data, record.KindTuningPlan, &done); err != nil {
		return err
	}
	done.Patch, done.Undo = done.Undo, done.Patch
	for i, change := range done.Changes {
		done.Changes[i].From, done.Changes[i].To = change.To, change.From
		done.Changes[i].MetricType, done.Changes[i].PreviousMetricType = change.PreviousMetricType, change.MetricType
		done.Changes[i].Why = "taken back"
		if change.ActsAboveBefore != nil {
			after := change.ActsAboveAfter
			done.Changes[i].ActsAboveAfter, done.Changes[i].ActsAboveBefore = *change.ActsAboveBefore, &after
		}
	}
	return o.carryOut(ctx, done)
}
