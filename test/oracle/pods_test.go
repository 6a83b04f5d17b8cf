package oracle

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
)

const maxPods = 14

// mood is how a trace's pods are: what rarely happens must not always happen.
type mood struct {
	// calm pods run, are Ready and have samples.
	calm bool
	// equal pods request the same.
	equal bool
	// sidecars, podLevel and gaps: requests in odd places, or missing.
	sidecars, podLevel, gaps bool
}

func (g generator) mood() mood {
	return mood{calm: g.chance(30), equal: g.chance(60), sidecars: g.chance(25), podLevel: g.chance(20), gaps: g.chance(15)}
}

func pick[T any](g generator, values ...T) T { return values[g.IntN(len(values))] }

// pods draws the pods at a sync, most of them as many as replicas.
func (g generator) pods(m mood, w *world, at time.Time) []corev1.Pod {
	n := int(w.spec)
	if !m.calm && g.chance(30) {
		n += g.IntN(5) - 2
	}
	pods := []corev1.Pod{}
	for i := range min(max(n, 0), maxPods) {
		pods = append(pods, g.pod(m, i, w.flags, at))
	}
	return pods
}

func (g generator) pod(m mood, i int, f flags, at time.Time) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("x-%d", i), Namespace: namespace, Labels: map[string]string{"app": "x"}}}
	g.requests(m, &pod)
	pod.Status.Phase = corev1.PodRunning
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	started := at.Add(-time.Hour)
	since := started.Add(time.Minute)
	if !m.calm {
		if g.chance(20) {
			pod.Status.Phase = pick(g, corev1.PodPending, corev1.PodPending, corev1.PodFailed, corev1.PodSucceeded, corev1.PodUnknown)
		}
		if g.chance(7) {
			gone := metav1.NewTime(at.Add(-5 * time.Second))
			pod.DeletionTimestamp = &gone
		}
		ready.Status = pick(g, corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown)
		if g.chance(40) {
			// Around the end of the initialization period, to the second.
			started = at.Add(-f.initialization + time.Duration(g.IntN(3)-1)*time.Second)
		} else if g.chance(50) {
			started = at.Add(-time.Duration(g.IntN(600)) * time.Second)
		}
		since = started.Add(pick(g, 0, time.Second, f.readyDelay-time.Second, f.readyDelay, f.readyDelay+time.Second, time.Minute))
		if since.After(at) {
			since = at
		}
	}
	ready.LastTransitionTime = metav1.NewTime(since)
	if m.calm || !g.chance(4) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, ready}
	}
	if m.calm || !g.chance(4) {
		start := metav1.NewTime(started)
		pod.Status.StartTime = &start
	}
	return pod
}

// requests gives a pod one to three containers and what these ask for.
func (g generator) requests(m mood, pod *corev1.Pod) {
	ask := func() corev1.ResourceRequirements {
		cpu, memory := "250m", "1Gi"
		if !m.equal {
			cpu, memory = pick(g, "100m", "250m", "1", "3"), pick(g, "256Mi", "1Gi", "3Gi")
		}
		list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
		if m.gaps && g.chance(4) {
			delete(list, pick(g, corev1.ResourceCPU, corev1.ResourceMemory))
		}
		return corev1.ResourceRequirements{Requests: list}
	}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: ask()}}
	if !m.gaps || !g.chance(4) {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "proxy", Resources: ask()})
	}
	if m.sidecars {
		always := corev1.ContainerRestartPolicyAlways
		for i := range g.IntN(3) {
			c := corev1.Container{Name: fmt.Sprintf("init-%d", i), Resources: ask()}
			if g.chance(60) {
				c.RestartPolicy = &always
			}
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		}
	}
	if m.podLevel && g.chance(80) {
		own := ask()
		if g.chance(30) {
			delete(own.Requests, pick(g, corev1.ResourceCPU, corev1.ResourceMemory))
		}
		pod.Spec.Resources = &own
		if g.chance(30) {
			pod.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
		}
	}
}

// samples draws what the pods use of a metric, around its target.
func (g generator) samples(m mood, metric hpa.Metric, pods []corev1.Pod, at time.Time) metrics.PodMetricsInfo {
	unit := float64(metric.TargetMilli)
	if metric.Target == hpa.Utilization {
		// Of one container, and of most pods two.
		request := 250.0
		if metric.Name == string(corev1.ResourceMemory) {
			request = 1000 << 30
		}
		if metric.Container == "" {
			request *= 2
		}
		unit *= request / 100
	}
	unit *= pick(g, 0, 1, 0.9, 1.1, 0.5, 1.5, g.Float64()*3, g.Float64()*3)
	samples := metrics.PodMetricsInfo{}
	for i := range pods {
		if m.calm || g.chance(85) {
			noise := float64(g.IntN(3) - 1)
			if !m.equal {
				noise += unit * (g.Float64() - 0.5)
			}
			samples[pods[i].Name] = metrics.PodMetric{
				Value:     max(0, int64(unit+noise)),
				Timestamp: at.Add(-time.Duration(g.IntN(90)) * time.Second),
				Window:    pick(g, 10*time.Second, 30*time.Second, time.Minute),
			}
		}
	}
	if !m.calm && g.chance(3) {
		// A pod that is gone may still be measured.
		samples["gone"] = metrics.PodMetric{Value: int64(unit), Timestamp: at, Window: time.Minute}
	}
	return samples
}
