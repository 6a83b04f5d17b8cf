// Package oracle holds the HPA model of plugins/core/hpa against the real
// controller of k8s.io/kubernetes, which runs here on virtual time. It is a
// module of its own, so that the controller's dependencies stay out of the
// product. `make oracle` runs the same tests with other versions of it, each
// with the go.mod that is named after it (go test -modfile).
package oracle
