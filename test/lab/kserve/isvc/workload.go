package isvc

import (
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve/object"
)

// defaultPort is the port of a container that names none.
const defaultPort = 8080

// ErrNoRuntime says that a model names no image: KServe would look for a
// ServingRuntime, and the lab has none.
var ErrNoRuntime = errors.New("no runtime found to support the specified framework/version")

// errNoContainer says that a predictor describes nothing to run.
var errNoContainer = errors.New("predictor has neither a container nor a model")

// Deployment returns the predictor's Deployment. Its replicas are the minimum;
// they count at creation and, for [ClassNone], from then on.
func (s *Service) Deployment() (*appsv1.Deployment, error) {
	pod, err := s.pod()
	if err != nil {
		return nil, err
	}
	template := metav1.ObjectMeta{
		Name:        s.Component(),
		Namespace:   s.Object.GetNamespace(),
		Labels:      s.labels(),
		Annotations: s.annotations(),
	}
	if s.Predictor.Model != nil && s.Predictor.Model.StorageURI != "" {
		template.Annotations = object.Union(template.Annotations,
			map[string]string{storageAnnotation: s.Predictor.Model.StorageURI})
	}
	deployment := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: object.Owned(s.Object, s.Component(), s.labels(), s.annotations()),
		Spec: appsv1.DeploymentSpec{
			Replicas: new(s.minReplicas()),
			Selector: &metav1.LabelSelector{MatchLabels: s.selector()},
			Template: corev1.PodTemplateSpec{ObjectMeta: template, Spec: *pod},
		},
	}
	if s.Predictor.DeploymentStrategy != nil {
		deployment.Spec.Strategy = *s.Predictor.DeploymentStrategy
	}
	return deployment, nil
}

// pod returns the predictor's pod spec with the model server first.
func (s *Service) pod() (*corev1.PodSpec, error) {
	pod := s.Predictor.PodSpec.DeepCopy()
	if model := s.Predictor.Model; model != nil {
		if model.Image == "" {
			return nil, ErrNoRuntime
		}
		server := model.Container.DeepCopy()
		server.Name = container
		pod.Containers = slices.Insert(pod.Containers, 0, *server)
	}
	if len(pod.Containers) == 0 {
		return nil, errNoContainer
	}
	server := &pod.Containers[0]
	if server.Name == "" {
		server.Name = container
	}
	server.Env = append(server.Env, corev1.EnvVar{Name: "INFERENCE_SERVICE_NAME", Value: s.Object.GetName()})
	if server.ReadinessProbe == nil {
		server.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
			TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(port(server))},
		}}
	}
	return pod, nil
}

// Service returns the predictor's Service: port 80 to the first container's
// first port.
func (s *Service) Service() *corev1.Service {
	target := int32(defaultPort)
	if pod, err := s.pod(); err == nil {
		target = port(&pod.Containers[0])
	}
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: object.Owned(s.Object, s.Component(), s.labels(), s.annotations()),
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeClusterIP,
			Selector: s.selector(),
			Ports: []corev1.ServicePort{{
				Name:       "http",
				Port:       80,
				Protocol:   corev1.ProtocolTCP,
				TargetPort: intstr.FromInt32(target),
			}},
		},
	}
}

func port(server *corev1.Container) int32 {
	if len(server.Ports) > 0 {
		return server.Ports[0].ContainerPort
	}
	return defaultPort
}

func (s *Service) minReplicas() int32 {
	if s.Predictor.MinReplicas != nil {
		return *s.Predictor.MinReplicas
	}
	return 1
}

// maxReplicas is never below the minimum; unset, it is equal to it.
func (s *Service) maxReplicas() int32 { return max(s.minReplicas(), s.Predictor.MaxReplicas) }
