package kube

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func owns(manager, subresource string, at int, fields string) metav1.ManagedFieldsEntry {
	entry := metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields)}
	if at > 0 {
		entry.Time = &metav1.Time{Time: time.Date(2026, 11, 30, 12, at, 0, 0, time.UTC)}
	}
	return entry
}

// TestReplicasWriter: who owns spec.replicas through the scale subresource wrote
// it last, with or without a time; among others the newest.
func TestReplicasWriter(t *testing.T) {
	const size, other = `{"f:spec":{"f:replicas":{}}}`, `{"f:spec":{"f:template":{}}}`
	for name, test := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		manager string
		timed   bool
	}{
		"scale without a time":  {[]metav1.ManagedFieldsEntry{owns("kubectl-client-side-apply", "", 30, other), owns("kubectl", "scale", 0, size)}, "kubectl", false},
		"scale beside an apply": {[]metav1.ManagedFieldsEntry{owns("keda-operator", "scale", 10, size), owns("argocd-controller", "", 30, size)}, "keda-operator", true},
		"the newest of two":     {[]metav1.ManagedFieldsEntry{owns("helm", "", 30, size), owns("argocd-controller", "", 20, size)}, "helm", true},
		"a status is none":      {[]metav1.ManagedFieldsEntry{owns("helm", "", 30, size), owns("x", "status", 40, size)}, "helm", true},
		"nobody":                {[]metav1.ManagedFieldsEntry{owns("helm", "", 30, other)}, "", false},
	} {
		got := replicasWriter(test.entries)
		if (got == nil) != (test.manager == "") || (got != nil && (got.Manager != test.manager || got.Time.IsZero() == test.timed)) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
