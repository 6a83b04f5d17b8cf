// Package workload puts into a cluster what the product is tried against and
// what runs in pods: the S3 server, the model hub and the KServe stand-in. It
// does the same to the lab's own cluster and to any other.
package workload

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/lab/build"
	"github.com/kubectl-inference/kubectl-inference/test/lab/objects"
)

//go:embed manifests/*.yaml
var manifests embed.FS

// imagesAnnotation holds the identities of a pod template's images, so that a
// Deployment is rolled when an image of the same tag is built anew.
const imagesAnnotation = "lab.test/images"

// Objects returns what belongs to the images that were built; source is the
// repository, where the KServe stand-in has its objects.
func Objects(source string, images []build.Built) ([]*unstructured.Unstructured, error) {
	var list []*unstructured.Unstructured
	for _, part := range []struct{ image, file string }{{"versitygw", "storage.yaml"}, {"fakehub", "hub.yaml"}} {
		if !has(images, part.image) {
			continue
		}
		data, err := manifests.ReadFile("manifests/" + part.file)
		if err != nil {
			return nil, fmt.Errorf("read objects: %w", err)
		}
		some, err := objects.Decode(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	if has(images, "kserve-standin") {
		var files []string
		for _, dir := range []string{"crds", "manifests"} {
			some, err := filepath.Glob(filepath.Join(source, "test/lab/kserve", dir, "*.yaml"))
			if err != nil {
				return nil, fmt.Errorf("find objects: %w", err)
			}
			files = append(files, some...)
		}
		some, err := objects.ReadFiles(files...)
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	for _, object := range list {
		mark(object)
		if err := annotate(object, images); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// mark labels an object as the lab's own.
func mark(object *unstructured.Unstructured) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[objects.OwnLabel] = "true"
	object.SetLabels(labels)
}

func has(images []build.Built, name string) bool {
	return slices.ContainsFunc(images, func(b build.Built) bool { return b.Name == name })
}

// annotate notes the identities of a Deployment's images in its pod template.
func annotate(object *unstructured.Unstructured, images []build.Built) error {
	if object.GetKind() != "Deployment" {
		return nil
	}
	containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
	if err != nil {
		return fmt.Errorf("read Deployment %s: %w", object.GetName(), err)
	}
	var ids []string
	for _, item := range containers {
		container, ok := item.(map[string]any)
		if !ok {
			continue
		}
		for _, image := range images {
			if tag, ok := container["image"].(string); ok && slices.Contains(image.Tags, tag) {
				ids = append(ids, image.ID)
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return unstructured.SetNestedField(object.Object, strings.Join(ids, ","), "spec", "template", "metadata", "annotations", imagesAnnotation)
}

// Apply applies the objects and waits until their Deployments run.
func Apply(ctx context.Context, config *rest.Config, list []*unstructured.Unstructured) error {
	client, err := objects.New(config)
	if err != nil {
		return err
	}
	if err := client.Apply(ctx, list); err != nil {
		return err
	}
	if err := client.WaitRolledOut(ctx, list); err != nil {
		return explain(ctx, config, list, err)
	}
	return nil
}

// explain adds what the pods say about why they do not run.
func explain(ctx context.Context, config *rest.Config, list []*unstructured.Unstructured, err error) error {
	client, clientErr := kubernetes.NewForConfig(config)
	if clientErr != nil {
		return err
	}
	// The time that was waited with has run out.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), explainTimeout)
	defer cancel()
	var reasons []error
	for _, object := range list {
		if object.GetKind() != "Namespace" {
			continue
		}
		pods, listErr := client.CoreV1().Pods(object.GetName()).List(ctx, metav1.ListOptions{})
		if listErr != nil {
			continue
		}
		for _, pod := range pods.Items {
			for _, status := range pod.Status.ContainerStatuses {
				if waiting := status.State.Waiting; waiting != nil {
					reasons = append(reasons, fmt.Errorf("pod %s/%s: %s: %s", pod.Namespace, pod.Name, waiting.Reason, waiting.Message))
				}
			}
		}
	}
	all := errors.Join(append([]error{err}, reasons...)...)
	if strings.Contains(all.Error(), "ErrImagePull") || strings.Contains(all.Error(), "ImagePullBackOff") || strings.Contains(all.Error(), "ErrImageNeverPull") {
		return failure.New(failure.NotFound, "load the archives of the lab's images folder into the cluster's nodes, e.g. `kind load image-archive FILE`", "start pods: %w", all)
	}
	return all
}

// Remove deletes what Apply made.
func Remove(ctx context.Context, config *rest.Config, list []*unstructured.Unstructured) error {
	client, err := objects.New(config)
	if err != nil {
		return err
	}
	return client.Delete(ctx, list)
}
