// Package plugins is what runs on the engineer's machine. The map:
//
//	root        the command tree; errors become text and exit codes here
//
//	syncmodel   sync-model: a pinned Hub revision to a bucket
//	rollout     rollout: a verified prefix on GPUs
//	bench       bench: what a target carries
//	envelope    envelope: the capacity envelope of measurements
//	tune        tune: thresholds on the object that keeps them
//	explain     explain-scaling: why there are N replicas
//	manifests   manifests: the built-in YAML
//
//	core        pure: hpa (the HPA's decision), keda (ScaledObjects and their
//	            triggers), chain (the objects from owner to pods), capacity
//	            (curve, knee, thresholds), plan (changes and their inverse),
//	            predictor (the objects that serve), query (what a PromQL query
//	            asks for), references (which objects use a model in a bucket)
//	kube        edge: clients, the chain's objects, API errors in words
//	prom        edge: Prometheus as KEDA reaches it, credentials included
//	jobrun      edge: Jobs created, followed, left and found again
//	output      edge: documents as data, tables, charts, differences
//	term        edge: streams, colour, width
//
// Imports point one way: cmd -> root -> a command -> core, kube, jobrun, output,
// term -> jobs (the shared documents, and runs with --local). A command never
// imports another, core never a client, a clock or the network. test/arch holds
// this.
//
// Every command is three calls: fetch (edge) -> a pure function from values to
// a document -> render. The document is what -o json prints; a table or a chart
// is a view of it.
package plugins
