// Package kedaoracle holds the model of KEDA in plugins/core/keda against KEDA
// itself: its scale handler runs here on virtual time, with its own executor,
// fallback, modifiers and Prometheus scaler, against a Prometheus of ours.
package kedaoracle
