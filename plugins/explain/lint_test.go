package explain

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// manifest is a ScaledObject alone: what CI has.
func manifest(spec string, triggers ...string) string {
	return fmt.Sprintf("apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: chat, namespace: models}\nspec:\n  scaleTargetRef: {name: chat-predictor}\n%s  triggers:\n%s\n",
		spec, strings.Join(triggers, "\n"))
}

func trigger(query, threshold, more string) string {
	return fmt.Sprintf("  - {type: prometheus, metadata: {serverAddress: 'http://p:9090', threshold: %q, query: '%s'}%s}", threshold, query, more)
}

const (
	queue    = `sum(vllm:num_requests_waiting)`
	latency  = `histogram_quantile(0.99, sum by (le) (rate(vllm:e2e_request_latency_seconds_bucket[1m])))`
	decode   = `histogram_quantile(0.99, sum by (le) (rate(vllm:request_inference_time_seconds_bucket[1m])))`
	ttft     = `histogram_quantile(0.99, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[1m])))`
	whole    = ", metricType: Value"
	fallback = "  fallback: {failureThreshold: 3, replicas: 2}\n"
	atLeast1 = "  minReplicaCount: 1\n"
	plainHPA = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: mine, namespace: models}\nspec: {maxReplicas: 4, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: chat-predictor}}\n"
)

// TestLint: each rule fires on one ScaledObject and is silent on one that
// differs in just what the rule is about.
func TestLint(t *testing.T) {
	tests := map[string]struct {
		severity     string
		fires, quiet string
		says         string
		args         []string
	}{
		idRivals: {"error", manifest(atLeast1, trigger(queue, "2", "")) + "---\n" + strings.Replace(manifest(atLeast1, trigger(queue, "2", "")), "name: chat,", "name: other,", 1),
			manifest(atLeast1, trigger(queue, "2", "")) + "---\n" + strings.Replace(manifest(atLeast1, trigger(queue, "2", "")), "namespace: models", "namespace: elsewhere", 1), "ScaledObject other scales the same workload", nil},
		idRivals + " by an HPA": {"error", manifest(atLeast1, trigger(queue, "2", "")) + "---\n" + plainHPA, manifest(atLeast1, trigger(queue, "2", "")) + "---\n" + strings.Replace(plainHPA, "chat-predictor", "web", 1), "HPA mine scales the same workload", nil},
		idNoFallback:            {"info", manifest(atLeast1, trigger(queue, "2", "")), manifest(atLeast1+fallback, trigger(queue, "2", "")), "no replica is removed", nil},
		idFallbackOff: {"error",
			manifest(atLeast1+fallback+"  advanced: {scalingModifiers: {formula: 'a', target: '0.5'}}\n", trigger(queue, "2", ", name: a")),
			manifest(atLeast1+fallback+"  advanced: {scalingModifiers: {formula: 'a', target: '5'}}\n", trigger(queue, "2", ", name: a")), "0.5 is none", nil},
		idFallbackOff + " for cpu": {"warning",
			manifest(atLeast1+fallback, "  - {type: cpu, metricType: Utilization, metadata: {value: '80'}}"),
			manifest(atLeast1+fallback, "  - {type: cpu, metricType: Utilization, metadata: {value: '80'}}", trigger(queue, "2", "")), "covers no cpu", nil},
		// keda#8172, keda#2619
		idIdleFlaps: {"error",
			manifest("  minReplicaCount: 2\n  idleReplicaCount: 1\n", trigger(queue, "2", "")),
			manifest("  minReplicaCount: 2\n  idleReplicaCount: 0\n", trigger(queue, "2", "")), "flaps between 1 and 2", nil},
		idIdleFlaps + " at the minimum": {"error",
			manifest("  minReplicaCount: 2\n  idleReplicaCount: 2\n", trigger(queue, "2", "")), manifest("  minReplicaCount: 2\n", trigger(queue, "2", "")), "not below", nil},
		// keda#804, keda#737
		idCooldown: {"info", manifest(atLeast1+"  cooldownPeriod: 30\n", trigger(queue, "2", "")), manifest("  cooldownPeriod: 30\n", trigger(queue, "2", "")), "cooldownPeriod 30 has no effect", nil},
		// keda#6145
		idActivation: {"info",
			manifest(atLeast1, strings.Replace(trigger(queue, "2", ""), "threshold:", "activationThreshold: '5', threshold:", 1)),
			manifest("", strings.Replace(trigger(queue, "2", ""), "threshold:", "activationThreshold: '5', threshold:", 1)), "activationThreshold 5", nil},
		idEngineAtZero: {"error", manifest("", trigger(queue, "2", "")), manifest("", trigger(queue, "2", ""), trigger("sum(envoy_cluster_upstream_rq_active)", "9", "")), "nothing brings it back", nil},
		// keda#5755
		idLatencyAveraged: {"warning", manifest(atLeast1, trigger(latency, "30", "")), manifest(atLeast1, trigger(latency, "30", whole)), "at 3 replicas and 45 it votes for 2", nil},
		idRatioAveraged: {"warning",
			manifest(atLeast1, trigger("sum(rate(a[1m])) / sum(rate(b[1m]))", "0.8", "")), manifest(atLeast1, trigger("sum(rate(a[1m])) / sum(rate(b[1m]))", "0.8", whole)), "divides a ratio", nil},
		// mitodl/ol-infrastructure#5304
		idAverageAveraged: {"warning",
			manifest(atLeast1, trigger("sum(a) / scalar(count(up))", "2", "")), manifest(atLeast1, trigger("sum(a)", "2", "")), "at 4 replicas it acts above 8.8, not 2.2", nil},
		idAverageAveraged + " by avg": {"warning", manifest(atLeast1, trigger("avg(vllm:num_requests_waiting)", "2", "")), manifest(atLeast1, trigger("avg(vllm:num_requests_waiting)", "2", whole)), "once more", nil},
		// grafana/tempo#7376
		idRunsAway:  {"warning", manifest(atLeast1, trigger(queue, "2", whole)), manifest(atLeast1, trigger(queue, "2", "")), "up to the maximum 100", nil},
		idEmptyZero: {"info", manifest(atLeast1+fallback, trigger(queue, "2", "")), manifest(atLeast1+fallback, strings.Replace(trigger(queue, "2", ""), "threshold:", "ignoreNullValues: 'false', threshold:", 1)), "does not act on that", nil},
		idUnreachable: {"error",
			manifest(atLeast1, trigger("sum(vllm:kv_cache_usage_perc)", "0.95", "")), manifest(atLeast1, trigger("sum(vllm:kv_cache_usage_perc)", "0.9", "")), "0.95 x 1.1 = 1.045", nil},
		idUnreachable + " in percent": {"error",
			manifest(atLeast1, trigger("avg(DCGM_FI_DEV_GPU_UTIL)", "95", whole)), manifest(atLeast1, trigger("avg(DCGM_FI_DEV_GPU_UTIL)", "85", whole)), "100 at most", nil},
		idKVEdges: {"info", manifest(atLeast1, trigger("sum(vllm:kv_cache_usage_perc)", "0.75", "")), manifest(atLeast1, trigger(queue, "0.75", "")), "above 0.825 with 1, 1.65 with 2, 2.475 with 3", nil},
		idSeveralSeries: {"warning",
			manifest(atLeast1, trigger("vllm:num_requests_waiting", "2", "")), manifest(atLeast1, trigger(queue, "2", "")), "returned multiple elements", nil},
		idPodPattern: {"info",
			manifest(atLeast1, trigger(`sum(vllm:num_requests_waiting{pod=~"chat-predictor-.*"})`, "2", "")),
			manifest(atLeast1, trigger(`sum(vllm:num_requests_waiting{pod=~"chat-predictor-[a-z0-9]+-[a-z0-9]{5}"})`, "2", "")), "chat-predictor-prefill-", nil},
		idCoarseBucket:                    {"info", manifest(atLeast1, trigger(ttft, "2", whole)), manifest(atLeast1, trigger(ttft, "2.5", whole)), "between the buckets 1 and 2.5", nil},
		idNoQueueTime:                     {"warning", manifest(atLeast1, trigger(decode, "30", whole)), manifest(atLeast1, trigger(latency, "30", whole)), "a queue of any length", nil},
		idNoQueueTime + " beside a queue": {"info", manifest(atLeast1, trigger(decode, "30", whole), trigger(queue, "2", "")), manifest(atLeast1, trigger(latency, "30", whole)), "a queue of any length", nil},
		idSlow: {"warning",
			manifest(atLeast1+"  advanced: {horizontalPodAutoscalerConfig: {behavior: {scaleUp: {stabilizationWindowSeconds: 60}}}}\n", trigger(latency, "30", whole)),
			manifest(atLeast1, trigger(queue, "2", "")), "1m stabilization + 1m query + 15s scrape + 15s sync", []string{"--lead-time=60s"}},
		idSlow + " without a lead time": {"info",
			manifest(atLeast1+"  advanced: {horizontalPodAutoscalerConfig: {behavior: {scaleUp: {stabilizationWindowSeconds: 120}}}}\n", trigger(queue, "2", "")),
			manifest(atLeast1, trigger(queue, "2", "")), "2m stabilization", nil},
		idFallbackOff + " for a negative count": {"error",
			manifest(atLeast1+"  fallback: {failureThreshold: 3, replicas: -1}\n", trigger(queue, "2", "")),
			manifest(atLeast1+"  fallback: {failureThreshold: 3, replicas: 0}\n", trigger(queue, "2", "")), "may not be negative", nil},
		idRefused: {"error", manifest("  minReplicaCount: 101\n", trigger(queue, "2", "")), manifest("  minReplicaCount: 100\n", trigger(queue, "2", "")), "101 is above maxReplicaCount 100", nil},
		// kserve#4764
		idRefused + " for a target of 0 percent": {"error",
			manifest(atLeast1, "  - {type: cpu, metricType: Utilization, metadata: {value: '0'}}"),
			manifest(atLeast1, "  - {type: cpu, metricType: Utilization, metadata: {value: '1'}}"), "must be above 0", nil},
		idRefused + " for a threshold of nothing":  {"error", manifest(atLeast1, trigger(queue, "0.0004", "")), manifest(atLeast1, trigger(queue, "0.0005001", "")), "s0 queue depth has the target 0.0004", nil},
		idRefused + " for what is missing":         {"error", manifest(atLeast1, "  - {type: prometheus}"), manifest(atLeast1, trigger(queue, "2", "")), "no serverAddress and no query and no threshold", nil},
		idRefused + " for a threshold of words":    {"error", manifest(atLeast1, trigger(queue, "abc", "")), manifest(atLeast1, trigger(queue, "2", "")), `the threshold "abc", which is no number`, nil},
		idRefused + " for a list without triggers": {"error", manifest(atLeast1), manifest(atLeast1, trigger(queue, "2", "")), "there is no trigger", nil},
		idBrokenQuery: {"error", manifest(atLeast1, trigger("sum(((", "2", "")), manifest(atLeast1, trigger(queue, "2", "")), "a ( is not closed", nil},
		idRefused + " for a utilization": {"error",
			manifest(atLeast1, trigger(queue, "2", ", metricType: Utilization")), manifest(atLeast1, trigger(queue, "2", ", metricType: Value")), "only cpu and memory", nil},
		idRefused + " for a formula": {"error",
			manifest(atLeast1+"  advanced: {scalingModifiers: {formula: 'a + b', target: '2'}}\n", trigger(queue, "2", ", name: a")),
			manifest(atLeast1+"  advanced: {scalingModifiers: {formula: 'a + 1', target: '2'}}\n", trigger(queue, "2", ", name: a")), "unknown name b", nil},
		idUnreachable + " of a percentage": {"error",
			manifest(atLeast1, trigger("avg(vllm:kv_cache_usage_perc) * 100", "95", whole)), manifest(atLeast1, trigger("100 * avg(vllm:kv_cache_usage_perc)", "75", whole)), "acts above 95 x 1.1 = 104.5, and the query gives 100 at most", nil},
		// A replica may have several GPUs.
		idUnreachable + " of GPUs": {"error",
			manifest(atLeast1, trigger("max(DCGM_FI_DEV_GPU_UTIL)", "95", whole)), manifest(atLeast1, trigger("sum(DCGM_FI_DEV_GPU_UTIL)", "95", "")), "100 at most", nil},
		idUnreachable + " of misses": {"error",
			manifest(atLeast1, trigger("1 - avg(vllm:prefix_cache_hit_rate)", "0.95", whole)), manifest(atLeast1, trigger("1 - avg(vllm:prefix_cache_hit_rate)", "0.9", whole)), "1 at most", nil},
		idUnreachable + " of a total": {"error",
			manifest(atLeast1, trigger("avg(vllm:kv_cache_usage_perc)", "1.5", whole)), manifest(atLeast1, trigger("sum(vllm:kv_cache_usage_perc)", "1.5", whole)), "1 at most", nil},
		idKVEdges + " in percent": {"info", manifest(atLeast1, trigger("sum(vllm:kv_cache_usage_perc) * 100", "75", "")), manifest(atLeast1, trigger("avg(vllm:kv_cache_usage_perc) * 100", "75", whole)), "above 82.5 with 1, 165 with 2", nil},
		idScalar:                  {"error", manifest(atLeast1, trigger("scalar("+queue+")", "2", "")), manifest(atLeast1, trigger("vector(scalar("+queue+"))", "2", "")), "cannot decode", nil},
		idLatencyAveraged + " but not multiplied back": {"warning",
			manifest(atLeast1, trigger(latency, "30", "")), manifest(atLeast1, trigger(latency+" * count(up)", "30", "")), "votes for 2", nil},
		// The rate of the sum is the requests in flight, by Little's law.
		idLatencyAveraged + " for a mean": {"warning",
			manifest(atLeast1, trigger("sum(rate(vllm:e2e_request_latency_seconds_sum[1m])) / sum(rate(vllm:e2e_request_latency_seconds_count[1m]))", "4", "")),
			manifest(atLeast1, trigger("sum(rate(vllm:e2e_request_latency_seconds_sum[1m]))", "4", "")), "divides a latency", nil},
		idCoarseBucket + " of the same unit": {"info", manifest(atLeast1, trigger(ttft+" * count(up)", "2", "")), manifest(atLeast1, trigger(ttft+" * 1000", "2", whole)), "between the buckets 1 and 2.5", nil},
		idPodPattern + " without the canary": {"info",
			manifest(atLeast1, trigger(`sum(vllm:num_requests_waiting{pod=~"chat-predictor-.*",pod!~"web-.*"})`, "2", "")),
			manifest(atLeast1, trigger(`sum(vllm:num_requests_waiting{pod=~"chat-predictor-.*",pod!~"chat-predictor-canary-.*"})`, "2", "")), "chat-predictor-prefill-", nil},
		// keda#5263, keda#7398: from 5 on 4 a step is not all: 5, 10, and 11/10 is within.
		idCountTolerance: {"warning", manifest("  minReplicaCount: 5\n", cron("11")), manifest(atLeast1, cron("10")), "asks for 11 replicas and stops at 10 on the way up from 5: 11/10 = 1.1", nil},
		// 1, 4, 8, 16, 20: 19 is not on the way.
		idCountTolerance + " that the way up jumps over": {"info", manifest(atLeast1, cron("20")), manifest(atLeast1, cron("10")), "adds none if the size ever is 19: 20/19 = 1.053", nil},
		idCountTolerance + " by steps of its own": {"warning",
			manifest(atLeast1+"  advanced: {horizontalPodAutoscalerConfig: {behavior: {scaleUp: {policies: [{type: Pods, value: 2, periodSeconds: 15}]}}}}\n", cron("20")), manifest(atLeast1, cron("10")), "stops at 19 on the way up from 1", nil},
		idCountTolerance + " of a metric": {"info",
			manifest(atLeast1, trigger("sum(wva_desired_replicas)", "1", "")), manifest(atLeast1+"  maxReplicaCount: 10\n", trigger("sum(wva_desired_replicas)", "1", "")), "at its maximum asks for 100 replicas and adds none if the size ever is 91 to 99: 100/91", nil},
		idCountTolerance + " without a tolerance": {"warning",
			manifest("  minReplicaCount: 10\n", cron("11")),
			manifest("  minReplicaCount: 10\n  advanced: {horizontalPodAutoscalerConfig: {behavior: {scaleUp: {tolerance: 0}}}}\n", cron("11")), "stops at 10", nil},
	}
	defer documented(t, slices.Collect(maps.Keys(tests)), false)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			id, _, _ := strings.Cut(name, " ")
			fired := findingsIn(t, test.fires, test.args...)
			at := slices.IndexFunc(fired, func(f record.Finding) bool { return f.ID == id })
			if at < 0 {
				t.Fatalf("silent: %+v", fired)
			}
			if f := fired[at]; f.Severity != test.severity || !strings.Contains(f.Message, test.says) || f.Fix == "" {
				t.Errorf("got %+v", f)
			}
			for _, f := range findingsIn(t, test.quiet, test.args...) {
				if f.ID == id {
					t.Errorf("fires: %+v", f)
				}
			}
		})
	}
}

func cron(replicas string) string {
	return "  - {type: cron, metadata: {timezone: UTC, start: 0 8 * * *, end: 0 20 * * *, desiredReplicas: '" + replicas + "'}}"
}

// documented: each rule that a manifest, or that needs a controller, is in one
// of both tests, and no test is about an id that --list-rules does not know.
func documented(t *testing.T, tested []string, live bool) {
	t.Helper()
	ids := map[string]bool{}
	for _, name := range tested {
		id, _, _ := strings.Cut(name, " ")
		ids[id] = true
		if !slices.ContainsFunc(rules(), func(r record.ScalingRule) bool { return r.ID == id }) {
			t.Errorf("%s is not documented", id)
		}
	}
	for _, rule := range rules() {
		if rule.Live == live && !ids[rule.ID] {
			t.Errorf("%s is not tested", rule.ID)
		}
	}
}

func findingsIn(t *testing.T, yaml string, args ...string) []record.Finding {
	t.Helper()
	stdout, _, err := run(t, yaml, append([]string{"-f", "-", "-o", "json"}, args...)...)
	if err != nil {
		t.Fatalf("%v in\n%s", err, yaml)
	}
	var document record.ScalingExplanation
	if err := json.Unmarshal([]byte(stdout), &document); err != nil {
		t.Fatal(err)
	}
	if document.Chains[0].State != record.ChainNew {
		t.Errorf("state %s", document.Chains[0].State)
	}
	return document.Chains[0].Warnings
}

func TestFailOn(t *testing.T) {
	warns, errs := manifest(atLeast1, trigger(latency, "30", "")), manifest("", trigger(queue, "2", ""))
	tests := map[string]struct {
		yaml, failOn string
		kind         failure.Kind
		text         string
	}{
		"warning":                {warns, "warning", failure.Differs, "1 warning"},
		"only warnings":          {warns, "error", 0, ""},
		"error counts for both":  {errs, "warning", failure.Differs, "1 error"},
		"error":                  {errs, "error", failure.Differs, "1 error"},
		"no such severity":       {warns, "info", failure.Usage, "no severity"},
		"nothing that is graver": {manifest(atLeast1+fallback, trigger(queue, "2", "")), "warning", 0, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stdout, _, err := run(t, test.yaml, "-f", "-", "--fail-on="+test.failOn)
			if test.kind == 0 {
				if err != nil || stdout == "" {
					t.Errorf("got %v", err)
				}
				return
			}
			if failure.KindOf(err) != test.kind || !strings.Contains(err.Error(), test.text) || (stdout == "") != (test.kind == failure.Usage) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestLintOfRefused: what is refused is not taken for something else besides.
func TestLintOfRefused(t *testing.T) {
	for name, yaml := range map[string]string{
		"utilization": manifest(atLeast1, trigger(queue, "1", ", metricType: Utilization")),
		"no number":   manifest(atLeast1, trigger(latency, "abc", whole)),
		"broken":      manifest(atLeast1, trigger("vllm:num_requests_waiting{", "2", "")),
	} {
		for _, f := range findingsIn(t, yaml) {
			if slices.Contains([]string{idRunsAway, idLatencyAveraged, idSeveralSeries, idCoarseBucket}, f.ID) {
				t.Errorf("%s: %+v", name, f)
			}
		}
		stdout, _, err := run(t, yaml, "-f", "-")
		if err != nil || strings.Contains(stdout, "0 per replica") || strings.Contains(stdout, "1000") {
			t.Errorf("%s: %v\n%s", name, err, stdout)
		}
	}
}
