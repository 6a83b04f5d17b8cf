package rollout

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/manifests"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/predictor"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
)

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

// environment is what the engine's S3 client needs beside its keys. What the
// user says of the engine's environment goes first: it may reach the bucket by
// another way than the Job.
func (o *options) environment() map[string]string {
	environment := map[string]string{}
	if o.store.Endpoint != "" {
		environment["AWS_ENDPOINT_URL"] = o.store.Endpoint
	}
	if o.store.Region != "" {
		environment["AWS_REGION"] = o.store.Region
	}
	maps.Copy(environment, o.engineEnv)
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

// ownObjects reads -f. One of its objects must be a predictor called NAME with
// a model reference that can be replaced.
func (o *options) ownObjects(settings predictor.Settings) (string, []*unstructured.Unstructured, error) {
	data, err := o.readFile()
	if err != nil {
		return "", nil, failure.New(failure.Usage, "", "read --filename: %w", err)
	}
	objects, err := decode(data)
	if err != nil {
		return "", nil, failure.New(failure.Usage, "", "read %s: %w", o.file, err)
	}
	var found *unstructured.Unstructured
	var others []string
	for _, object := range objects {
		if namespace := object.GetNamespace(); namespace != "" && namespace != o.namespace {
			return "", nil, failure.New(failure.Usage, "add -n "+namespace, "read %s: its %s %s is of namespace %s, not %s", o.file, object.GetKind(), object.GetName(), namespace, o.namespace)
		}
		object.SetNamespace(o.namespace)
		asWritten(object)
		switch {
		case !predictor.ReferencesModel(object):
		case object.GetName() == o.name:
			found = object
		default:
			others = append(others, object.GetKind()+" is called "+object.GetName())
		}
	}
	switch {
	case found == nil && len(others) > 0:
		return "", nil, failure.New(failure.Usage, "give the name that stands in the file", "read %s: its %s, not %s", o.file, strings.Join(others, ", its "), o.name)
	case found == nil:
		return "", nil, failure.New(failure.Usage, "the arguments of one of its containers must name the model, as s3://... before all flags or with --model",
			"read %s: it has no InferenceService or Deployment with a model reference to replace", o.file)
	}
	if err := predictor.Edit(found, settings); err != nil {
		return "", nil, failure.New(failure.Usage, "", "read %s: %w", o.file, err)
	}
	return found.GetKind(), objects, nil
}

// asWritten drops what the API server adds, so that the output of
// `kubectl get -o yaml` may be given as well.
func asWritten(object *unstructured.Unstructured) {
	unstructured.RemoveNestedField(object.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
}

func (o *options) readFile() ([]byte, error) {
	if o.file == "-" {
		return io.ReadAll(o.streams.In)
	}
	return os.ReadFile(o.file)
}

// decode reads YAML documents or JSON objects, one after the other.
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
