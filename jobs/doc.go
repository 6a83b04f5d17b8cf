// Package jobs is what runs in the cluster, in the one binary inference-job.
// The map:
//
//	runner   the frame of a Job: plan in, events and result out, exit code
//
//	sync     copies a Hub revision into a bucket, verified, manifest last
//	verify   holds a prefix against its manifest
//	prune    deletes the revisions that nothing uses
//	signing  signs manifests and checks signatures (OpenSSF Model Signing)
//	rollout  serves a verified prefix and measures the cold start
//	bench    sends the load and measures
//
//	hub      edge: the Hub's protocol
//	clock    edge: waiting that ends with a context
//	store    edge: S3
//	openai   edge: the streaming client of the engine's API
//	prom     edge: Prometheus windows
//	metrics  edge: what a running sync exposes and pushes
//	cluster  edge: the Kubernetes API from inside a pod
//
//	core     pure: record (every document that both sides share), stats,
//	         workload (prompts and shapes), failure (errors with hint and exit
//	         code), podstate (why a pod does not serve)
//
// Jobs never import plugins; core imports only core. test/arch holds this.
package jobs
