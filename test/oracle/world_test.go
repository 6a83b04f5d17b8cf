package oracle

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	scalefake "k8s.io/client-go/scale/fake"
	core "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
)

const (
	namespace  = "default"
	selector   = "app=x"
	syncPeriod = 15 * time.Second
)

// flags are the controller's settings, which the model must be told.
type flags struct {
	tolerance                             float64
	downscale, initialization, readyDelay time.Duration
}

// situation is what the controller sees in a sync.
type situation struct {
	spec, status int32
	selector     string
	pods         []corev1.Pod
	// totals and samples are those of the metrics by key; one that is absent
	// is a metric that fails.
	totals  map[string]int64
	samples map[string]metrics.PodMetricsInfo
	// noScale and noUpdate: the API server refuses.
	noScale, noUpdate bool
	// rival is the size that somebody else sets just before the controller does.
	rival *int32
}

// world is a situation that changes, and what the controller did in it.
type world struct {
	situation
	flags flags
	syncs []time.Time
	// wrote is when the controller last changed the size.
	wrote  time.Time
	events map[string]*corev1.Event
	// read is the size that the controller found in its last sync, did what it
	// made of it, steps what the workload's own controller tells.
	read  int32
	did   []rescaled
	steps []hpa.SizeStep
	store cache.Store
}

var (
	errNoMetric = errors.New("no such metric here")
	errRefused  = errors.New("refused")
)

func (w *world) total(name string) (int64, error) {
	total, found := w.totals[name]
	if !found {
		return 0, errNoMetric
	}
	return total, nil
}

// sampled hands out a copy: the controller changes what it gets.
func (w *world) sampled(key string) (metrics.PodMetricsInfo, time.Time, error) {
	samples := w.samples[key]
	if len(samples) == 0 {
		return nil, time.Time{}, errNoMetric
	}
	return maps.Clone(samples), time.Now(), nil
}

func (w *world) GetResourceMetric(_ context.Context, name corev1.ResourceName, _ string, _ labels.Selector, container string) (metrics.PodMetricsInfo, time.Time, error) {
	return w.sampled(sampleKey(string(name), container))
}

func (w *world) GetRawMetric(name, _ string, _, _ labels.Selector) (metrics.PodMetricsInfo, time.Time, error) {
	return w.sampled(sampleKey(name, ""))
}

func sampleKey(name, container string) string { return name + "@" + container }

func (w *world) GetObjectMetric(name, _ string, _ *autoscalingv2.CrossVersionObjectReference, _ labels.Selector) (int64, time.Time, error) {
	total, err := w.total(name)
	return total, time.Now(), err
}

func (w *world) GetExternalMetric(name, _ string, _ labels.Selector) ([]int64, time.Time, error) {
	total, err := w.total(name)
	// The controller sums what it gets.
	return []int64{total - total/3, total / 3}, time.Now(), err
}

// scaleClient answers for the scale subresource and notes each sync. A failed
// read is repeated within the same one.
func (w *world) scaleClient() *scalefake.FakeScaleClient {
	client := &scalefake.FakeScaleClient{}
	client.AddReactor("get", "*", func(core.Action) (bool, runtime.Object, error) {
		if now := time.Now(); len(w.syncs) == 0 || now.Sub(w.syncs[len(w.syncs)-1]) >= time.Second {
			w.syncs, w.read = append(w.syncs, now), w.spec
		}
		if w.noScale {
			return true, nil, errRefused
		}
		return true, &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: namespace},
			Spec:       autoscalingv1.ScaleSpec{Replicas: w.spec},
			Status:     autoscalingv1.ScaleStatus{Replicas: w.status, Selector: w.selector},
		}, nil
	})
	client.AddReactor("update", "*", func(action core.Action) (bool, runtime.Object, error) {
		if w.noUpdate {
			return true, nil, errRefused
		}
		if w.rival != nil {
			if len(w.syncs)%2 == 0 {
				// The workload's controller may be fast enough to see it.
				w.resized(w.spec, *w.rival)
			}
			w.spec, w.rival = *w.rival, nil
			return true, nil, apierrors.NewConflict(autoscalingv1.Resource("scale"), "x", errRefused)
		}
		scale := action.(core.UpdateAction).GetObject().(*autoscalingv1.Scale)
		w.did = append(w.did, rescaled{time.Now(), w.read, scale.Spec.Replicas})
		w.resized(w.stepped(), scale.Spec.Replicas)
		w.spec, w.wrote = scale.Spec.Replicas, time.Now()
		return true, scale, nil
	})
	return client
}

// api is the API server of a trace: it outlives controllers.
func (w *world) api(object *autoscalingv2.HorizontalPodAutoscaler) *fake.Clientset {
	// Four fifths of the time of NewClientset go into managed fields.
	client := fake.NewSimpleClientset(object)
	w.recordEvents(client)
	return client
}

// start runs a controller over the world and returns what stops it.
func (w *world) start(client *fake.Clientset) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	// Without a period, informers up to 1.33 wait for a channel of the process,
	// and virtual time stands still.
	factory := informers.NewSharedInformerFactory(client, 24*time.Hour)
	controller := podautoscaler.NewHorizontalController(ctx, client.CoreV1(), w.scaleClient(), client.AutoscalingV2(),
		testrestmapper.TestOnlyStaticRESTMapper(legacyscheme.Scheme), w,
		factory.Autoscaling().V2().HorizontalPodAutoscalers(), factory.Core().V1().Pods(),
		syncPeriod, w.flags.downscale, w.flags.tolerance, w.flags.initialization, w.flags.readyDelay)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	w.store = factory.Core().V1().Pods().Informer().GetStore()
	w.showPods()
	go controller.Run(ctx, 1)
	return func() {
		cancel()
		factory.Shutdown()
		time.Sleep(time.Minute)
	}
}

// showPods puts the pods where the controller looks them up: an API in between
// would add time, and no truth.
func (w *world) showPods() {
	items := make([]any, len(w.pods))
	for i := range w.pods {
		items[i] = &w.pods[i]
	}
	_ = w.store.Replace(items, "")
}

// combined marks an event that stands for many.
const combined = "(combined from similar events): "

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
			same := change.Message == "" || key == event.Name+change.Message
			if strings.HasPrefix(change.Message, combined) {
				same = strings.HasPrefix(event.Message, combined)
			}
			if event.Name != patch.GetName() || !same {
				continue
			}
			event.Count, event.LastTimestamp = change.Count, change.LastTimestamp
			if change.Message != "" {
				event.Message = change.Message
			}
		}
		return true, &change, nil
	})
}

// modelFlags are the same settings for the model.
func (f flags) model() hpa.Flags {
	return hpa.Flags{Tolerance: &f.tolerance, DownscaleWindow: &f.downscale, CPUInitialization: &f.initialization, ReadinessDelay: &f.readyDelay}
}
