package kedaoracle

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/scale"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
)

// cluster is the API server that KEDA sees: one ScaledObject, its Deployment,
// its HPA and its pods. Any other request is a panic on a nil client.
type cluster struct {
	client.Client
	mu       sync.Mutex
	object   []byte
	replicas int32
	ready    int32
	// querying is what the HPA's ScalingActive condition says.
	querying bool
}

func (c *cluster) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch into := into.(type) {
	case *kedav1alpha1.ScaledObject:
		*into = kedav1alpha1.ScaledObject{}
		return json.Unmarshal(c.object, into)
	case *appsv1.Deployment:
		replicas := c.replicas
		*into = appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &replicas}}
		return nil
	case *autoscalingv2.HorizontalPodAutoscaler:
		status := corev1.ConditionFalse
		if c.querying {
			status = corev1.ConditionTrue
		}
		into.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: autoscalingv2.ScalingActive, Status: status}}
		return nil
	}
	return fmt.Errorf("get %T: there is none", into)
}

func (c *cluster) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	pods, ok := into.(*corev1.PodList)
	if !ok {
		return fmt.Errorf("list %T: there are none", into)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for range c.ready {
		pods.Items = append(pods.Items, corev1.Pod{Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		}})
	}
	pods.Items = append(pods.Items, corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}})
	return nil
}

func (c *cluster) Status() client.SubResourceWriter { return statusWriter{cluster: c} }

// statusWriter carries out merge patches of the ScaledObject's status.
type statusWriter struct {
	client.SubResourceWriter
	cluster *cluster
}

func (w statusWriter) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		return err
	}
	status, err := json.Marshal(map[string]json.RawMessage{"status": whole["status"]})
	if err != nil {
		return err
	}
	w.cluster.mu.Lock()
	defer w.cluster.mu.Unlock()
	if len(whole["status"]) > 0 {
		if w.cluster.object, err = jsonpatch.MergePatch(w.cluster.object, status); err != nil {
			return err
		}
	}
	// A client hands the object back as the server has it now.
	reflect.ValueOf(object).Elem().SetZero()
	return json.Unmarshal(w.cluster.object, object)
}

// Scales is the scale client.
func (c *cluster) Scales(string) scale.ScaleInterface { return scales{cluster: c} }

type scales struct {
	scale.ScaleInterface
	cluster *cluster
}

func (s scales) Get(context.Context, schema.GroupResource, string, metav1.GetOptions) (*autoscalingv1.Scale, error) {
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	return &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: s.cluster.replicas}, Status: autoscalingv1.ScaleStatus{Selector: "app=x"}}, nil
}

func (s scales) Update(_ context.Context, _ schema.GroupResource, update *autoscalingv1.Scale, _ metav1.UpdateOptions) (*autoscalingv1.Scale, error) {
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	s.cluster.replicas = update.Spec.Replicas
	return update, nil
}

// recorder drops events.
type recorder struct{}

func (recorder) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}
