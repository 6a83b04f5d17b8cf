// Package oracle holds the HPA model of plugins/core/hpa against the real
// controller of k8s.io/kubernetes, which runs here on virtual time. It is a
// module of its own, so that the controller's dependencies stay out of the
// product.
package oracle
