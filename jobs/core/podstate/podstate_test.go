package podstate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func waiting(reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Image: "example.test/engine:1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
}

func crashes(n int32, state corev1.ContainerState, last *corev1.ContainerStateTerminated) corev1.ContainerStatus {
	return corev1.ContainerStatus{RestartCount: n, State: state, LastTerminationState: corev1.ContainerState{Terminated: last}}
}

var (
	backOff = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 40s"}}
	running = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	ended   = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2, Reason: "Error"}}
	killed  = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled", Message: "no memory"}
)

func TestWaiting(t *testing.T) {
	for name, test := range map[string]struct {
		status corev1.PodStatus
		want   string
	}{
		"new":            {corev1.PodStatus{}, ""},
		"running":        {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: running}}}, ""},
		"being made":     {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("ContainerCreating", "")}}, ""},
		"initializing":   {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("PodInitializing", "")}}, ""},
		"unschedulable":  {corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."}}}, "pod p is not scheduled: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu."},
		"image pull":     {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("ErrImagePull", "no such host")}}, "pod p cannot pull image example.test/engine:1: no such host"},
		"image back-off": {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("ImagePullBackOff", "")}}, "pod p cannot pull image example.test/engine:1: ImagePullBackOff"},
		"configuration":  {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("CreateContainerConfigError", `secret "keys" not found`)}}, `pod p waits: secret "keys" not found`},
		"init container": {corev1.PodStatus{
			InitContainerStatuses: []corev1.ContainerStatus{waiting("CrashLoopBackOff", "")}, ContainerStatuses: []corev1.ContainerStatus{waiting("PodInitializing", "")}}, "pod p crashed 0 times, last with an unknown error"},
		"crash loop": {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{crashes(4, backOff, killed)}}, "pod p crashed 4 times, last with exit code 137 (OOMKilled): no memory"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Status: test.status}
			pod.Name = "p"
			if got := Waiting(pod); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestWaitingLeavesThePodAlone: the statuses of a pod from a cache are shared.
func TestWaitingLeavesThePodAlone(t *testing.T) {
	init := make([]corev1.ContainerStatus, 1, 2)
	pod := &corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: init, ContainerStatuses: []corev1.ContainerStatus{{Name: "engine"}}}}
	Waiting(pod)
	if init[:2][1].Name != "" {
		t.Error("the pod's own slice was written to")
	}
}

func TestCrashing(t *testing.T) {
	for name, test := range map[string]struct {
		status corev1.ContainerStatus
		want   string
	}{
		"too few":              {crashes(2, backOff, killed), ""},
		"up again":             {crashes(3, running, killed), ""},
		"waits to start again": {crashes(3, backOff, killed), "pod p crashed 3 times, last with exit code 137 (OOMKilled): no memory"},
		"just ended":           {crashes(5, ended, killed), "pod p crashed 5 times, last with exit code 2"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{test.status}}}
			pod.Name = "p"
			if got := Crashing(pod, 3); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestReady(t *testing.T) {
	pod := &corev1.Pod{}
	if _, ok := Ready(pod); ok {
		t.Error("a pod without conditions is ready")
	}
	for status, want := range map[corev1.ConditionStatus]bool{corev1.ConditionTrue: true, corev1.ConditionFalse: false, corev1.ConditionUnknown: false} {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
		if _, ok := Ready(pod); ok != want {
			t.Errorf("%s: ready is %v", status, ok)
		}
	}
}
