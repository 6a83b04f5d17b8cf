package tune

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/plan"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
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
	return envelope, decode(data, record.KindCapacityEnvelope, &envelope)
}

func (o *options) read(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(o.streams.In)
	}
	return os.ReadFile(name)
}

// decode reads a document of kind from JSON or YAML: -o prints either.
func decode(data []byte, kind string, out any) error {
	if !json.Valid(data) {
		converted, err := yaml.YAMLToJSON(data)
		if err != nil {
			return failure.New(failure.Usage, "", "read %s: neither JSON nor YAML: %w", kind, err)
		}
		data = converted
	}
	return record.Decode(data, kind, out)
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
	// Without this right no chain has a ScaledObject, which is not to say that
	// there is none.
	for _, unread := range fetched.Unread {
		if unread.Input == "keda" {
			return plan.Input{}, failure.New(failure.Denied, fmt.Sprintf("ask for the permission; `kubectl auth can-i %s %s -n %s` says when you have it", unread.Verb, unread.Resource, namespace),
				"tune %s: you cannot %s %s in %s", target, unread.Verb, unread.Resource, namespace)
		}
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
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind}, version)
	if err != nil {
		return nil, kube.Explain(err, "find %s", kind)
	}
	client, err := o.factory.Dynamic()
	if err != nil {
		return nil, err
	}
	return client.Resource(mapping.Resource).Namespace(namespace), nil
}
