// Package hpa is the decision of the HorizontalPodAutoscaler controller as a
// pure function: Decide takes what the controller had in one sync and returns
// every step that it took, from each metric's proposal to the final size.
//
// The arithmetic follows kube-controller-manager's package podautoscaler,
// version by version and in its order of floating-point operations, because a
// quotient that is exact on paper is not always exact in a float64.
//
// What the controller keeps in its memory (recent recommendations, its own
// rescales) and what it rounds before it shows it (averages) is unknown from
// outside. Such inputs are carried as bounds: each step is monotone in them, so
// a step's outcome is the Range between its two ends, exact where they meet.
package hpa
