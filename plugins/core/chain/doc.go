// Package chain joins the objects that decide a workload's size: from the root
// owner (InferenceService, LLMInferenceService or none) over ScaledObject and
// HPA to the scale target and its pods. It works on values, so it joins what a
// cluster returned and what a file holds alike.
package chain
