package rollout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/manifests"
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
	for _, change := range changes {
		fmt.Fprint(o.streams.Err, output.ColorDiff(change))
	}
	spec := jobrun.Spec{Command: "rollout", Run: o.name, Namespace: o.namespace, Plan: plan, SecretEnv: o.store.SecretEnv(), CallsAPI: true}
	o.job.Apply(&spec)
	event, err := o.job.Run(ctx, o.factory, o.streams, spec, true)
	if err != nil || event == nil {
		return err
	}
	return o.show(*event)
}

// objects returns the predictor's objects and which kind of predictor it is.
func (o *options) objects() (string, []*unstructured.Unstructured, error) {
	settings := predictor.Settings{
		Namespace: o.namespace, Name: o.name, ModelURI: o.model, ServedModel: o.served,
		Image: o.engineImage, Args: o.engineArgs, Env: o.environment(), SecretEnv: map[string]predictor.SecretKey{},
		CPU: o.cpu, Memory: o.memory, GPU: o.gpus, ServiceAccount: o.account, NodeSelector: o.nodeSelector,
	}
	for _, secret := range o.store.SecretEnv() {
		settings.SecretEnv[secret.Name] = predictor.SecretKey{Secret: secret.Secret, Key: secret.Key}
	}
	if o.file != "" {
		return o.ownObjects(settings)
	}
	kind, err := o.chooseKind()
	if err != nil {
		return "", nil, err
	}
	template := map[string]string{predictor.KindInferenceService: "inferenceservice.yaml", predictor.KindDeployment: "deployment.yaml"}[kind]
	data, err := fs.ReadFile(manifests.Files, path.Join("templates", template))
	if err != nil {
		return "", nil, err
	}
	objects, err := decode(data)
	if err != nil {
		return "", nil, fmt.Errorf("read template %s: %w", template, err)
	}
	return kind, objects, predictor.Apply(objects, settings)
}

// environment is what the engine's S3 client needs beside its keys.
func (o *options) environment() map[string]string {
	environment := map[string]string{}
	for name, value := range o.engineEnv {
		environment[name] = value
	}
	if o.store.Endpoint != "" {
		environment["AWS_ENDPOINT_URL"] = o.store.Endpoint
	}
	if o.store.Region != "" {
		environment["AWS_REGION"] = o.store.Region
	}
	return environment
}

// chooseKind is --kind, or InferenceService where the cluster serves it.
func (o *options) chooseKind() (string, error) {
	switch o.kind {
	case kindInferenceService:
		return predictor.KindInferenceService, nil
	case kindDeployment:
		return predictor.KindDeployment, nil
	}
	mapper, err := o.factory.Mapper()
	if err != nil {
		return "", err
	}
	_, err = mapper.RESTMapping(schema.GroupKind{Group: "serving.kserve.io", Kind: predictor.KindInferenceService}, "v1beta1")
	switch {
	case meta.IsNoMatchError(err):
		return predictor.KindDeployment, nil
	case err != nil:
		return "", kube.Explain(err, "ask the cluster whether it has KServe")
	}
	return predictor.KindInferenceService, nil
}

// ownObjects reads -f. One of its objects must be a predictor with a model
// reference that can be replaced.
func (o *options) ownObjects(settings predictor.Settings) (string, []*unstructured.Unstructured, error) {
	data, err := o.readFile()
	if err != nil {
		return "", nil, failure.New(failure.Usage, "", "read --filename: %w", err)
	}
	objects, err := decode(data)
	if err != nil {
		return "", nil, failure.New(failure.Usage, "", "read %s: %w", o.file, err)
	}
	for _, object := range objects {
		if !predictor.ReferencesModel(object) {
			continue
		}
		if object.GetName() != o.name {
			return "", nil, failure.New(failure.Usage, "give the name that stands in the file", "read %s: its %s is called %s, not %s", o.file, object.GetKind(), object.GetName(), o.name)
		}
		if err := predictor.Edit(object, settings); err != nil {
			return "", nil, failure.New(failure.Usage, "", "read %s: %w", o.file, err)
		}
		return object.GetKind(), objects, nil
	}
	return "", nil, failure.New(failure.Usage, "its first container's arguments must name the model, as s3://... or with --model",
		"read %s: it has no InferenceService or Deployment with a model reference to replace", o.file)
}

func (o *options) readFile() ([]byte, error) {
	if o.file == "-" {
		return io.ReadAll(o.streams.In)
	}
	return os.ReadFile(o.file)
}

func decode(data []byte) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); err != nil {
			if errors.Is(err, io.EOF) {
				return objects, nil
			}
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// compare sends each object to the API server as a dry run, with the user's
// own rights, and returns the differences to what is there.
func (o *options) compare(ctx context.Context, objects []*unstructured.Unstructured) ([]string, error) {
	client, err := o.factory.Dynamic()
	if err != nil {
		return nil, err
	}
	mapper, err := o.factory.Mapper()
	if err != nil {
		return nil, err
	}
	changes := []string{}
	for _, object := range objects {
		gvk := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return nil, kube.Explain(err, "plan %s %s", object.GetKind(), object.GetName())
		}
		if object.GetNamespace() == "" {
			object.SetNamespace(o.namespace)
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
			return nil, kube.Explain(err, "plan %s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName())
		}
		change, err := output.Diff(object.GetKind()+"/"+object.GetName(), live, proposed)
		if err != nil {
			return nil, err
		}
		if change != "" {
			changes = append(changes, change)
		}
	}
	return changes, nil
}

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
		plan.Deployment, plan.Workload = o.name, nil
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
