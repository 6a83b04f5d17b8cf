// Package record holds every document that the plugin and the jobs share, and
// nothing else: plans go in, events and results come out. Documents are
// versioned: apiVersion kubectl-inference.io/v1alpha1 and a kind. Durations are
// numbers of seconds with the unit in the name (p99_seconds), times are RFC
// 3339 in UTC, empty lists are [], an unknown number is null and never 0.
package record
