// Package keda reads ScaledObjects as values: the triggers, the metric that
// each becomes in the HPA, and the settings of KEDA's own loop between zero and
// one. It follows KEDA 2.15 to 2.21 without importing it.
package keda
