package oracle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	scalefake "k8s.io/client-go/scale/fake"
	core "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
)

const (
	namespace  = "default"
	syncPeriod = 15 * time.Second
	podCount   = 12
)

// world is what the controller sees: a scale subresource, pods, and totals of
// metrics by name. A total that is absent is a metric that fails.
type world struct {
	spec, status int32
	ready        int
	totals       map[string]int64
	syncs        []time.Time
	events       map[string]*corev1.Event
}

var errNoMetric = errors.New("no such metric here")

func (w *world) total(name string) (int64, error) {
	total, found := w.totals[name]
	if !found {
		return 0, errNoMetric
	}
	return total, nil
}

func (w *world) GetResourceMetric(context.Context, corev1.ResourceName, string, labels.Selector, string) (metrics.PodMetricsInfo, time.Time, error) {
	return nil, time.Time{}, errNoMetric
}

func (w *world) GetRawMetric(string, string, labels.Selector, labels.Selector) (metrics.PodMetricsInfo, time.Time, error) {
	return nil, time.Time{}, errNoMetric
}

func (w *world) GetObjectMetric(name, _ string, _ *autoscalingv2.CrossVersionObjectReference, _ labels.Selector) (int64, time.Time, error) {
	total, err := w.total(name)
	return total, time.Now(), err
}

func (w *world) GetExternalMetric(name, _ string, _ labels.Selector) ([]int64, time.Time, error) {
	total, err := w.total(name)
	return []int64{total}, time.Now(), err
}

// scaleClient answers for the scale subresource and notes each sync.
func (w *world) scaleClient() *scalefake.FakeScaleClient {
	client := &scalefake.FakeScaleClient{}
	client.AddReactor("get", "*", func(core.Action) (bool, runtime.Object, error) {
		w.syncs = append(w.syncs, time.Now())
		return true, &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: namespace},
			Spec:       autoscalingv1.ScaleSpec{Replicas: w.spec},
			Status:     autoscalingv1.ScaleStatus{Replicas: w.status, Selector: "app=x"},
		}, nil
	})
	client.AddReactor("update", "*", func(action core.Action) (bool, runtime.Object, error) {
		scale := action.(core.UpdateAction).GetObject().(*autoscalingv1.Scale)
		w.spec = scale.Spec.Replicas
		return true, scale, nil
	})
	return client
}

// start runs a controller over the world and returns the API that it writes
// to, and what stops it.
func (w *world) start(hpa *autoscalingv2.HorizontalPodAutoscaler) (*fake.Clientset, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	// Four fifths of the time of NewClientset go into managed fields.
	client := fake.NewSimpleClientset(hpa)
	w.recordEvents(client)
	for i := range podCount {
		_, _ = client.CoreV1().Pods(namespace).Create(ctx, w.pod(i), metav1.CreateOptions{})
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	controller := podautoscaler.NewHorizontalController(ctx, client.CoreV1(), w.scaleClient(), client.AutoscalingV2(),
		testrestmapper.TestOnlyStaticRESTMapper(legacyscheme.Scheme), w,
		factory.Autoscaling().V2().HorizontalPodAutoscalers(), factory.Core().V1().Pods(),
		syncPeriod, 300*time.Second, 0.1, 300*time.Second, 30*time.Second)
	factory.Start(ctx.Done())
	go controller.Run(ctx, 1)
	return client, func() {
		cancel()
		factory.Shutdown()
		time.Sleep(time.Minute)
	}
}

func (w *world) pod(i int) *corev1.Pod {
	status := corev1.ConditionFalse
	if i < w.ready {
		status = corev1.ConditionTrue
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("x-%d", i), Namespace: namespace, Labels: map[string]string{"app": "x"}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}},
	}
}

// setReady makes the first n pods Ready.
func (w *world) setReady(client *fake.Clientset, n int) {
	for i := min(n, w.ready); i < max(n, w.ready); i++ {
		changed := world{ready: n}
		_, _ = client.CoreV1().Pods(namespace).Update(context.Background(), changed.pod(i), metav1.UpdateOptions{})
	}
	w.ready = n
}

// recordEvents keeps the events of the HPA by name and text. An event's name
// holds the nanosecond, and here all events of a sync have the same one: the
// API alone would keep the first of them.
func (w *world) recordEvents(client *fake.Clientset) {
	w.events = map[string]*corev1.Event{}
	client.PrependReactor("create", "events", func(action core.Action) (bool, runtime.Object, error) {
		event := action.(core.CreateAction).GetObject().(*corev1.Event).DeepCopy()
		w.events[event.Name+event.Message] = event
		return true, event, nil
	})
	client.PrependReactor("patch", "events", func(action core.Action) (bool, runtime.Object, error) {
		var change corev1.Event
		patch := action.(core.PatchAction)
		if err := json.Unmarshal(patch.GetPatch(), &change); err != nil {
			return true, nil, err
		}
		for key, event := range w.events {
			if event.Name == patch.GetName() && (change.Message == "" || key == event.Name+change.Message) {
				event.Count, event.LastTimestamp = change.Count, change.LastTimestamp
			}
		}
		return true, &change, nil
	})
}
