// The product's package keda alone, by a link: the requirements of the whole
// product would lift KEDA's own to versions that KEDA was not built with.
module github.com/kubectl-inference/kubectl-inference

go 1.26.0

require (
	github.com/expr-lang/expr v1.17.8
	k8s.io/api v0.36.4
	k8s.io/apimachinery v0.36.4
)
