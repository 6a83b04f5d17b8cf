// Package keda decides as KEDA does, from values: the metrics that a
// ScaledObject's triggers become in the HPA, what KEDA reports of each (readings
// of Prometheus, fallback, scalingModifiers), and the turns of KEDA's own loop
// between zero, the idle count and the minimum. It follows KEDA 2.15 to 2.21
// without importing it; test/kedaoracle holds it against KEDA itself.
package keda
