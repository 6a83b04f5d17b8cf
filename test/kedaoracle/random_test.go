package kedaoracle

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

// generator draws states.
type generator struct{ *rand.Rand }

func pick[T any](g generator, values ...T) T { return values[g.IntN(len(values))] }

// rarely is true one time in n.
func (g generator) rarely(n int) bool { return g.IntN(n) == 0 }

func (g generator) value() string {
	return pick(g, "0", "0.0004", "0.0005", "0.0015", "0.5", "1", "1.005", "2", "2.5", "7", "10.0005", "1234.5678", "-3", "1e9",
		strconv.FormatFloat(g.Float64()*20, 'g', -1, 64))
}

// response draws an answer: mostly a value, else one of everything that goes
// wrong.
func (g generator) response() response {
	body := func(result string) response {
		return response{200, fmt.Sprintf(`{"status":"success","data":{"resultType":"vector","result":%s}}`, result)}
	}
	if !g.rarely(3) {
		return body(fmt.Sprintf(`[{"metric":{"a":"b"},"value":[1,%q]}]`, g.value()))
	}
	return pick(g,
		response{500, "no"}, response{404, ""}, response{200, "no JSON"}, response{200, ""}, response{200, `{"status":"error"}`},
		body(`[]`), body(`null`), body(`[{"metric":{},"value":[]}]`), body(`[{"metric":{},"value":[1]}]`), body(`[{"metric":{},"value":[1,null]}]`),
		body(`[{"metric":{},"value":[1,"NaN"]}]`), body(`[{"metric":{},"value":[1,"+Inf"]}]`), body(`[{"metric":{},"value":[1,"-Inf"]}]`),
		body(`[{"metric":{},"value":[1,"x"]}]`), body(`[{"metric":{},"value":[1,"1e999"]}]`), body(`[1,"5"]`),
		body(`[{"metric":{},"value":[1,"1"]},{"metric":{},"value":[1,"2"]}]`),
	)
}

// object draws a ScaledObject with its status at a time.
func (g generator) object(url string, now time.Time, triggers int) map[string]any {
	spec := map[string]any{"scaleTargetRef": map[string]any{"name": "w"}, "pollingInterval": pick(g, 5, 30)}
	optional := func(key string, values ...int) {
		if g.rarely(2) {
			spec[key] = pick(g, values...)
		}
	}
	optional("minReplicaCount", 0, 0, 1, 2, 5)
	optional("idleReplicaCount", 0, 0, 1, 3)
	optional("maxReplicaCount", 5, 10, 50)
	optional("cooldownPeriod", 0, 30, 120, 300)
	optional("initialCooldownPeriod", 0, 60, 600)
	spec["triggers"] = g.triggers(url, triggers)
	if !g.rarely(3) {
		fallback := map[string]any{"failureThreshold": pick(g, 0, 1, 3), "replicas": pick(g, 0, 1, 3, 7)}
		if !g.rarely(3) {
			fallback["behavior"] = pick(g, "static", "currentReplicas", "currentReplicasIfHigher", "currentReplicasIfLower", "scalingModifiers")
		}
		spec["fallback"] = fallback
	}
	if g.rarely(3) {
		spec["advanced"] = map[string]any{"scalingModifiers": g.modifiers()}
	}
	metadata := map[string]any{
		"name": "x", "namespace": "n", "generation": 1, "uid": "u",
		"creationTimestamp": now.Add(-time.Duration(g.IntN(900)) * time.Second).Format(time.RFC3339),
	}
	if g.rarely(4) {
		metadata["annotations"] = g.annotations()
	}
	return map[string]any{
		"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": metadata, "spec": spec, "status": g.status(now, spec["triggers"].([]any)),
	}
}

func (g generator) triggers(url string, count int) []any {
	var triggers []any
	for i := range count {
		if g.rarely(8) {
			triggers = append(triggers, map[string]any{"type": "cpu", "metricType": "Utilization", "metadata": map[string]any{"value": "60"}})
			continue
		}
		metadata := map[string]any{"serverAddress": url, "query": fmt.Sprintf("q%d", i), "threshold": pick(g, "1", "0.5", "0.0015", "1.005", "2", "4.3339", "75")}
		if g.rarely(2) {
			metadata["activationThreshold"] = pick(g, "0", "0.5", "1", "2", "-5", "2.0004")
		}
		if g.rarely(2) {
			metadata["ignoreNullValues"] = pick(g, "true", "false")
		}
		trigger := map[string]any{"type": "prometheus", "name": fmt.Sprintf("t%d", i), "metadata": metadata}
		if g.rarely(3) {
			trigger["metricType"] = pick(g, "Value", "AverageValue")
		}
		triggers = append(triggers, trigger)
	}
	return triggers
}

func (g generator) modifiers() map[string]any {
	modifiers := map[string]any{
		"formula": pick(g, "t0", "t0 * 2", "t0 > 1 ? 5 : 0", "max([t0, 1])", "t0 ?? 3", "t0 ?? nil", "1 / t0", "t0 / t0", "float(t0) + 1", "[t0][int(t0)]",
			"t1 + t0", "(t0 ?? 1) + (t1 ?? 2)", "count([t0, t1], # > 1)", "no + 1", "t0 +", "int(t0)", `"a"`, ""),
		"target": pick(g, "1", "2", "5", "0.5", "0.0015", "0", "x"),
	}
	if g.rarely(2) {
		modifiers["activationTarget"] = pick(g, "0", "1", "2.5", "x")
	}
	if g.rarely(3) {
		modifiers["metricType"] = pick(g, "Value", "AverageValue")
	}
	return modifiers
}

func (g generator) annotations() map[string]any {
	annotations := map[string]any{}
	for _, name := range []string{"paused", "paused-replicas", "paused-scale-in", "paused-scale-out", "force-activation"} {
		if g.rarely(4) {
			annotations["autoscaling.keda.sh/"+name] = pick(g, "true", "false", "", "yes", "3")
		}
	}
	return annotations
}

func (g generator) status(now time.Time, triggers []any) map[string]any {
	names := []string{}
	health := map[string]any{}
	for i, trigger := range triggers {
		if trigger.(map[string]any)["type"] == "cpu" {
			continue
		}
		name := fmt.Sprintf("s%d-prometheus", i)
		names = append(names, name)
		if g.rarely(2) {
			failures := g.IntN(5)
			status := "Happy"
			if failures > 0 {
				status = "Failing"
			}
			health[name] = map[string]any{"numberOfFailures": failures, "status": status}
		}
	}
	status := map[string]any{
		"scaleTargetKind": "apps/v1.Deployment", "externalMetricNames": names, "hpaName": "keda-hpa-x",
		"conditions": []any{
			map[string]any{"type": "Ready", "status": "Unknown"}, map[string]any{"type": "Active", "status": "Unknown"},
			map[string]any{"type": "Fallback", "status": "Unknown"}, map[string]any{"type": "Paused", "status": "Unknown"},
		},
		"scaleTargetGVKR": map[string]any{"group": "apps", "version": "v1", "kind": "Deployment", "resource": "deployments"},
	}
	if len(health) > 0 {
		status["health"] = health
	}
	if g.rarely(2) {
		// Whole seconds, as the API keeps them; on both sides of the cooldown.
		status["lastActiveTime"] = now.Add(-time.Duration(pick(g, 0, 1, 29, 30, 31, 119, 120, 121, 299, 300, 301, 5000)) * time.Second).Format(time.RFC3339)
	}
	return status
}

func (g generator) state(url string, now time.Time, triggers int) state {
	s := state{object: g.object(url, now, triggers), replicas: pick[int32](g, 0, 0, 1, 1, 2, 3, 7), ready: pick[int32](g, 0, 1, 2, 3), querying: g.rarely(2)}
	s.responses = g.responses(triggers)
	return s
}

func (g generator) responses(triggers int) map[string]response {
	responses := map[string]response{}
	for i := range triggers {
		responses[fmt.Sprintf("q%d", i)] = g.response()
	}
	return responses
}
