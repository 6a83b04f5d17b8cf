package llmisvc

import (
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve/object"
)

const servingPort = 8000

// errNoTemplate says that neither the service nor what it inherits from
// describes a pod.
var errNoTemplate = errors.New("workload has no template")

// ErrMultiNode is what a KServe without LeaderWorkerSets says of a worker.
var ErrMultiNode = errors.New(`no matches for kind "LeaderWorkerSet" in version "leaderworkerset.x-k8s.io/v1"`)

// Deployment returns a role's Deployment. Nothing of the service's own labels
// and annotations is copied: touching one restarts nothing. Its replicas are
// unset where the user fixed none.
func (s *Service) Deployment(r Role) (*appsv1.Deployment, error) {
	switch {
	case r.MultiNode():
		return nil, ErrMultiNode
	case r.workload.Template == nil || len(r.workload.Template.Containers) == 0:
		return nil, errNoTemplate
	}
	selector := map[string]string{
		"app.kubernetes.io/component": r.component,
		"app.kubernetes.io/name":      s.Object.GetName(),
		"app.kubernetes.io/part-of":   partOf,
		"kserve.io/component":         "workload",
		"llm-d.ai/role":               r.label,
	}
	return &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: object.Owned(s.Object, s.DeploymentName(r),
			object.Union(r.workload.Labels, selector), object.Union(r.workload.Annotations)),
		Spec: appsv1.DeploymentSpec{
			Replicas: r.workload.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: selector},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels:      object.Union(r.workload.Labels, selector),
					Annotations: object.Union(r.workload.Annotations),
				},
				Spec: *r.workload.Template.DeepCopy(),
			},
		},
	}, nil
}

// Service returns the workloads' Service. It selects the pods of both roles.
func (s *Service) Service() *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: object.Owned(s.Object, s.ServiceName(), s.identity(), nil),
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP,
			Selector: map[string]string{
				"app.kubernetes.io/name":    s.Object.GetName(),
				"app.kubernetes.io/part-of": partOf,
				"kserve.io/component":       "workload",
			},
			Ports: []corev1.ServicePort{{
				Name:        "http",
				AppProtocol: new("http"),
				Port:        servingPort,
				Protocol:    corev1.ProtocolTCP,
				TargetPort:  intstr.FromInt32(servingPort),
			}},
		},
	}
}
