package rollout

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/predictor"
	"github.com/kubectl-inference/kubectl-inference/plugins/jobrun"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
)

func (o *options) run(ctx context.Context) error {
	kind, objects, err := o.objects()
	if err != nil {
		return err
	}
	changes, err := o.compare(ctx, objects)
	if err != nil {
		return err
	}
	plan, err := o.plan(kind, objects)
	if err != nil {
		return err
	}
	if o.dryRun {
		return o.showPlan(plan, changes)
	}
	o.say(changes)
	spec := jobrun.Spec{Command: "rollout", Run: o.name, Namespace: o.namespace, Plan: plan, SecretEnv: o.store.SecretEnv(), CallsAPI: true}
	o.job.Apply(&spec)
	event, err := o.job.Run(ctx, o.factory, o.streams, spec, true)
	if err != nil || event == nil {
		return err
	}
	return o.show(*event)
}

// change is what a rollout does to one object.
type change struct {
	object string
	// created is true where the object is not there yet.
	created bool
	diff    string
}

// say tells what will be done. An object that is new would fill the screen with
// its own YAML, which --dry-run shows.
func (o *options) say(changes []change) {
	for _, change := range changes {
		if change.created {
			o.streams.Say("creates %s in namespace %s (--dry-run shows it whole)", change.object, o.namespace)
			continue
		}
		fmt.Fprint(o.streams.Err, output.ColorDiff(change.diff))
	}
}

// compare sends each object to the API server as a dry run, with the user's
// own rights, and returns the differences to what is there.
func (o *options) compare(ctx context.Context, objects []*unstructured.Unstructured) ([]change, error) {
	client, err := o.factory.Dynamic()
	if err != nil {
		return nil, err
	}
	mapper, err := o.factory.Mapper()
	if err != nil {
		return nil, err
	}
	changes := []change{}
	for _, object := range objects {
		gvk := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return nil, kube.Explain(err, "plan %s %s", object.GetKind(), object.GetName())
		}
		if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
			return nil, failure.New(failure.Usage, "apply it yourself and take it out of the file", "plan %s %s: it belongs to no namespace, and the Job's rights end there", object.GetKind(), object.GetName())
		}
		resource := client.Resource(mapping.Resource).Namespace(object.GetNamespace())
		live, err := resource.Get(ctx, object.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			live = nil
		} else if err != nil {
			return nil, kube.Explain(err, "get %s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName())
		}
		proposed, err := resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: kube.FieldManager, DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return nil, refused(err, object)
		}
		name := object.GetKind() + "/" + object.GetName()
		diff, err := output.Diff(name, live, proposed)
		if err != nil {
			return nil, err
		}
		if diff != "" {
			changes = append(changes, change{object: name, created: live == nil, diff: diff})
		}
	}
	return changes, nil
}

// refused puts the API server's answer to a dry run into words.
func refused(err error, object *unstructured.Unstructured) error {
	act := fmt.Sprintf("plan %s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName())
	switch {
	case apierrors.IsConflict(err):
		return failure.New(failure.Differs, "another manager owns the field: change it there, or remove the field from your object", "%s: %w", act, err)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return failure.New(failure.Usage, "", "%s: %w", act, err)
	}
	return kube.Explain(err, "%s", act)
}

// plan is what the Job will do.
func (o *options) plan(kind string, objects []*unstructured.Unstructured) (record.RolloutPlan, error) {
	plan := record.RolloutPlan{
		TypeMeta: record.Meta(record.KindRolloutPlan), Name: o.name, Namespace: o.namespace,
		Model:    record.RolloutModel{URI: o.model, Revision: o.revision, S3Endpoint: o.store.Endpoint, S3Region: o.store.Region},
		Verify:   o.verify,
		Objects:  []json.RawMessage{},
		Workload: predictor.Selector(kind, o.name), URL: predictor.URL(kind, o.name, o.namespace),
		ServedModel:    predictor.ServedModel(objects),
		TimeoutSeconds: o.limit.Seconds(),
	}
	if kind == predictor.KindDeployment {
		plan.Deployment, plan.Workload = o.name, map[string]string{}
	}
	for _, object := range objects {
		data, err := json.Marshal(object.Object)
		if err != nil {
			return record.RolloutPlan{}, fmt.Errorf("write plan: %w", err)
		}
		plan.Objects = append(plan.Objects, data)
	}
	return plan, nil
}
