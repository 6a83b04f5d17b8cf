package kube

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// podPort is a port of a pod.
type podPort struct {
	pod  string
	port int32
}

// backend finds a ready pod behind a service's port. Two requests.
func (f *Forwards) backend(ctx context.Context, namespace, service, pod, port string) (podPort, error) {
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		return podPort{}, fmt.Errorf("%q is no port", port)
	}
	if pod != "" {
		// The name of a pod leads past the service's ports.
		return podPort{pod, int32(number)}, nil
	}
	object, err := f.client.CoreV1().Services(namespace).Get(ctx, service, metav1.GetOptions{})
	if err != nil {
		return podPort{}, fmt.Errorf("service %s in %s: %w", service, namespace, needs(err, "get services", namespace))
	}
	if len(object.Spec.Selector) == 0 {
		return podPort{}, fmt.Errorf("service %s in %s selects no pods", service, namespace)
	}
	list, err := f.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(object.Spec.Selector).String()})
	if err != nil {
		return podPort{}, fmt.Errorf("pods of service %s in %s: %w", service, namespace, needs(err, "list pods", namespace))
	}
	for i := range list.Items {
		if !takesTraffic(&list.Items[i]) {
			continue
		}
		target, err := targetOf(object, int32(number), &list.Items[i])
		return podPort{list.Items[i].Name, target}, err
	}
	return podPort{}, fmt.Errorf("service %s in %s has no ready pod", service, namespace)
}

func takesTraffic(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
		return false
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// targetOf is the pod's port behind a port of the service. A headless service
// has addresses only: the port is the pod's own.
func targetOf(service *corev1.Service, port int32, pod *corev1.Pod) (int32, error) {
	if service.Spec.ClusterIP == corev1.ClusterIPNone {
		return port, nil
	}
	for _, one := range service.Spec.Ports {
		if one.Port != port || (one.Protocol != "" && one.Protocol != corev1.ProtocolTCP) {
			continue
		}
		if one.TargetPort.Type == intstr.Int {
			if one.TargetPort.IntVal == 0 {
				return port, nil
			}
			return one.TargetPort.IntVal, nil
		}
		for _, container := range append(pod.Spec.Containers[:len(pod.Spec.Containers):len(pod.Spec.Containers)], pod.Spec.InitContainers...) {
			for _, named := range container.Ports {
				if named.Name == one.TargetPort.StrVal {
					return named.ContainerPort, nil
				}
			}
		}
		return 0, fmt.Errorf("pod %s has no port %q", pod.Name, one.TargetPort.StrVal)
	}
	return 0, fmt.Errorf("service %s in %s has no port %d", service.Name, service.Namespace, port)
}

// forwardError puts a refusal into words: streams bring it as text only.
func forwardError(err error, namespace, pod string) error {
	act := fmt.Sprintf("forward a port of pod %s in %s", pod, namespace)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: it took too long", act)
	case apierrors.IsForbidden(err), strings.Contains(err.Error(), "forbidden"):
		return fmt.Errorf("%s: not permitted to create pods/portforward in %s", act, namespace)
	}
	return fmt.Errorf("%s: %w", act, short(err))
}
