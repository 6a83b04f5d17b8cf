package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	corev1 "k8s.io/api/core/v1"
)

// PodUsage is what the metrics server knows of one pod.
type PodUsage struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	// Timestamp is the end of the measurement, Window how long it took.
	Timestamp  metav1.Time     `json:"timestamp"`
	Window     metav1.Duration `json:"window"`
	Containers []struct {
		Name  string              `json:"name"`
		Usage corev1.ResourceList `json:"usage"`
	} `json:"containers"`
}

// MetricValue is a value of the custom or of the external metrics API.
type MetricValue struct {
	// DescribedObject is that of the custom metrics API.
	DescribedObject struct {
		Name string `json:"name"`
	} `json:"describedObject"`
	Timestamp     metav1.Time       `json:"timestamp"`
	WindowSeconds *int64            `json:"windowSeconds"`
	Value         resource.Quantity `json:"value"`
}

// MetricsAPI reads the three metrics APIs as the HPA controller does, with one
// request a question. Errors name the verb, the resource and the namespace.
type MetricsAPI struct {
	// older says that custom metrics were answered in the older version.
	older     atomic.Bool
	client    kubernetes.Interface
	namespace string
	factory   *Factory
}

// MetricsAPI makes a reader of a namespace's metrics.
func (f *Factory) MetricsAPI(namespace string) (*MetricsAPI, error) {
	client, err := f.Clientset()
	if err != nil {
		return nil, err
	}
	return &MetricsAPI{client: client, namespace: namespace, factory: f}, nil
}

// Usage lists the CPU and memory of the pods that a selector matches.
func (m *MetricsAPI) Usage(ctx context.Context, selector string) ([]PodUsage, error) {
	var list struct {
		Items []PodUsage `json:"items"`
	}
	path := "/apis/metrics.k8s.io/v1beta1/namespaces/" + m.namespace + "/pods"
	err := m.get(ctx, path, map[string]string{"labelSelector": selector}, &list)
	return list.Items, m.words(err, "list", "pods.metrics.k8s.io")
}

// OfPods lists a custom metric of the pods that a selector matches.
func (m *MetricsAPI) OfPods(ctx context.Context, selector, metric string, of *metav1.LabelSelector) ([]MetricValue, error) {
	return m.custom(ctx, "pods/*", metric, map[string]string{"labelSelector": selector}, of)
}

// OfObject reads a custom metric of one object. That of a Namespace is the
// namespace's own.
func (m *MetricsAPI) OfObject(ctx context.Context, apiVersion, kind, name, metric string, of *metav1.LabelSelector) (MetricValue, error) {
	object := "metrics"
	if group := schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind(); group.Kind != "Namespace" || group.Group != "" {
		mapper, err := m.factory.Mapper()
		if err != nil {
			return MetricValue{}, err
		}
		mapping, err := mapper.RESTMapping(group)
		if err != nil {
			return MetricValue{}, fmt.Errorf("no resource is known for kind %s", kind)
		}
		object = mapping.Resource.GroupResource().String() + "/" + name
	}
	values, err := m.custom(ctx, object, metric, map[string]string{}, of)
	if err == nil && len(values) != 1 {
		err = fmt.Errorf("%s has %d values of it", kind, len(values))
	}
	if err != nil {
		return MetricValue{}, err
	}
	return values[0], nil
}

// custom asks in the API's newest version, and in the one before it of servers
// that do not know that, from then on at once.
func (m *MetricsAPI) custom(ctx context.Context, object, metric string, params map[string]string, of *metav1.LabelSelector) ([]MetricValue, error) {
	if of != nil {
		params["metricLabelSelector"] = metav1.FormatLabelSelector(of)
	}
	var list struct {
		Items []MetricValue `json:"items"`
	}
	var err error
	versions := []string{"v1beta2", "v1beta1"}
	if m.older.Load() {
		versions = versions[1:]
	}
	for _, version := range versions {
		err = m.get(ctx, "/apis/custom.metrics.k8s.io/"+version+"/namespaces/"+m.namespace+"/"+object+"/"+metric, params, &list)
		if !apierrors.IsNotFound(err) {
			m.older.Store(err == nil && version == "v1beta1")
			break
		}
	}
	resource, _, _ := strings.Cut(object, "/")
	return list.Items, m.words(err, "get", resource+"/"+metric+".custom.metrics.k8s.io")
}

// External reads an external metric. This is not passive where KEDA serves it:
// KEDA asks its sources, and counts failures, as it does for the HPA.
func (m *MetricsAPI) External(ctx context.Context, metric string, of *metav1.LabelSelector) ([]MetricValue, error) {
	params := map[string]string{}
	if of != nil {
		params["labelSelector"] = metav1.FormatLabelSelector(of)
	}
	var list struct {
		Items []MetricValue `json:"items"`
	}
	err := m.get(ctx, "/apis/external.metrics.k8s.io/v1beta1/namespaces/"+m.namespace+"/"+metric, params, &list)
	return list.Items, m.words(err, "get", metric+".external.metrics.k8s.io")
}

func (m *MetricsAPI) get(ctx context.Context, path string, params map[string]string, into any) error {
	request := m.client.CoreV1().RESTClient().Get().AbsPath(path)
	for name, value := range params {
		request = request.Param(name, value)
	}
	data, err := request.DoRaw(ctx)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return errors.New("the answer is not that of a metrics API")
	}
	return nil
}

func (m *MetricsAPI) words(err error, verb, resource string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("cannot %s %s in %s: not permitted", verb, resource, m.namespace)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("cannot %s %s in %s: there is no such metric, or no server for its API", verb, resource, m.namespace)
	case apierrors.IsServiceUnavailable(err):
		return fmt.Errorf("cannot %s %s in %s: its server is not available", verb, resource, m.namespace)
	}
	return fmt.Errorf("cannot %s %s in %s: %w", verb, resource, m.namespace, short(err))
}
