// Package kserve is the lab's stand-in for KServe: test-only, and not KServe.
//
// KServe's controllers are not available to the lab. Instead it installs
//
//   - crds: definitions of InferenceService, LLMInferenceService and
//     LLMInferenceServiceConfig, written for the lab with the fields it uses.
//     KServe's own definitions can take their place; everything here works with
//     either;
//   - admission: what KServe's webhooks check and rewrite, as admission policies;
//   - cmd/kserve-standin: a reconciler that makes the objects KServe makes, with
//     KServe's names, labels, owner references and status, and that takes back
//     edits of them as KServe does.
//
// What it imitates is what was observed of KServe's main branch of August 2026
// with KEDA 2.21, the unpleasant parts included, because the tool must cope
// with them:
//
//   - an InferenceService is Ready while a rollout of its Deployment hangs, and
//     its status.observedGeneration is the Deployment's, not its own;
//   - its labels and annotations are copied to the pod template, so that writing
//     any of them restarts the pods;
//   - edits of a generated ScaledObject's spec are overwritten with a full PUT,
//     which on an InferenceService's drops KEDA's finalizer and label too;
//   - KServe and KEDA write the ScaledObject at the same time; who loses reports
//     Ready=False for a moment;
//   - nothing checks the thresholds of an LLMInferenceService; a bad one shows
//     as ScalingReady=False once KEDA has tried it;
//   - a metrics outage makes an LLMInferenceService not Ready.
//
// What it leaves out: serverless mode, ServingRuntimes (a predictor's model must
// name its image), storage initializers, transformers and explainers, canaries,
// multi-node workers, gateways, routes and schedulers, certificates. An object
// that asks for one of them gets either the error of a KServe that lacks the
// parts for it, or nothing.
//
// [CRDs], [Admission] and [Manifests] hold the objects to apply, in this order.
package kserve
