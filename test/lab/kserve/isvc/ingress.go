package isvc

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve/object"
)

const (
	// ingressDomain and ingressClass are the values of KServe's configuration
	// where its users change nothing. Nothing serves them in the lab.
	ingressDomain = "example.com"
	ingressClass  = "istio"
)

// Ingress returns the service's Ingress. Unlike the other children it gets the
// annotations unfiltered and no labels but the service's own.
func (s *Service) Ingress() *networkingv1.Ingress {
	annotations := object.Union(s.Object.GetAnnotations())
	if annotations[ModeAnnotation] == ModeRaw {
		annotations[ModeAnnotation] = ModeStandard
	}
	return &networkingv1.Ingress{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "Ingress"},
		ObjectMeta: object.Owned(s.Object, s.Object.GetName(), object.Union(s.Object.GetLabels()), annotations),
		Spec: networkingv1.IngressSpec{
			IngressClassName: new(ingressClass),
			Rules:            []networkingv1.IngressRule{s.rule(s.Object.GetName()), s.rule(s.Component())},
		},
	}
}

func (s *Service) rule(name string) networkingv1.IngressRule {
	return networkingv1.IngressRule{
		Host: s.host(name),
		IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
			Paths: []networkingv1.HTTPIngressPath{{
				Path:     "/",
				PathType: new(networkingv1.PathTypePrefix),
				Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
					Name: s.Component(),
					Port: networkingv1.ServiceBackendPort{Number: 80},
				}},
			}},
		}},
	}
}

func (s *Service) host(name string) string {
	return name + "-" + s.Object.GetNamespace() + "." + ingressDomain
}
