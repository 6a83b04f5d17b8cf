package explain

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// TestFirstTrigger: s0 is the first metric of a plain HPA too, and of one whose
// ScaledObject may not be read.
func TestFirstTrigger(t *testing.T) {
	plain := inNamespace("a", "3")
	keda := strings.ReplaceAll(plain, "name: m}", "name: s0-prometheus}")
	for name, yaml := range map[string]string{"plain": plain, "KEDA's": keda} {
		stdout, _, err := run(t, yaml, "-f", "-", "--set", "s0.value=9", "-o", "json")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var document record.ScalingExplanation
		if err := json.Unmarshal([]byte(stdout), &document); err != nil || document.Chains[0].WhatIf == nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, err := run(t, yaml, "-f", "-", "--set", "s1.value=9"); failure.KindOf(err) != failure.Usage {
			t.Errorf("%s: s1: %v", name, err)
		}
	}
}

// TestHintsOfOneTarget: the hint is a way out of the command line that was typed.
func TestHintsOfOneTarget(t *testing.T) {
	for args, want := range map[string]string{
		"-f - --watch": "saved objects do not change", "-f - --fresh": "saved objects do not change", "-f - --record d": "saved objects do not change",
		"-A --watch": "leave -A away", "--watch": "give a TARGET", "-A --history": "leave -A away",
	} {
		if _, _, err := run(t, "", strings.Fields(args)...); failure.KindOf(err) != failure.Usage || !strings.Contains(failure.HintOf(err), want) {
			t.Errorf("%s: %v (%s)", args, err, failure.HintOf(err))
		}
	}
}

// TestFallbackCutOff: before KEDA 2.18 a target of 0.5 was 0 to the fallback.
func TestFallbackCutOff(t *testing.T) {
	of := func(threshold, more string) string {
		return manifest(atLeast1+"  fallback: {failureThreshold: 3, replicas: 6}\n", trigger(queue, threshold, more)) +
			"status: {externalMetricNames: [s0-prometheus], health: {s0-prometheus: {numberOfFailures: 9, status: Failing}}}\n---\n" + strings.Replace(plainHPA, "name: mine,", "name: keda-hpa-chat,", 1) +
			"---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: chat-predictor, namespace: models}\nspec: {replicas: 3}\n"
	}
	yaml, whole, value := of("0.5", ""), of("5", ""), of("5", whole)
	for _, test := range []struct{ yaml, version, says string }{
		{yaml, "2.16", "it asks for 0 (static)"}, {yaml, "2.16", "the fallback asks for 0 replicas, not 6"}, {yaml, "2.18", "it asks for 6 (static)"}, {whole, "2.16", "it asks for 6 (static)"},
		{value, "2.16", "the fallback does nothing for it"}, {value, "2.18", "it asks for 6 (static)"},
	} {
		stdout, _, err := run(t, test.yaml, "-f", "-", "--keda-version", test.version)
		if err != nil || !strings.Contains(stdout, test.says) || strings.Contains(stdout, "cuts") != (test.yaml == yaml && test.version == "2.16") {
			t.Errorf("%s: %v, wanted %q:\n%s", test.version, err, test.says, stdout)
		}
	}
}

// TestKEDAVersionOfFiles: objects that tell no version of KEDA get one.
func TestKEDAVersionOfFiles(t *testing.T) {
	yaml := manifest(atLeast1+"  fallback: {failureThreshold: 3, replicas: 2}\n", trigger(queue, "2", whole))
	for version, off := range map[string]bool{"2.17": true, "2.18": false} {
		stdout, _, err := run(t, yaml, "-f", "-", "--keda-version", version)
		if err != nil || strings.Contains(stdout, idFallbackOff) != off || strings.Contains(stdout, "not known") {
			t.Errorf("%s: %v\n%s", version, err, stdout)
		}
	}
	for _, args := range [][]string{{"-f", "-", "--keda-version", "new"}, {"so/x", "--keda-version", "2.17"}} {
		if _, _, err := run(t, yaml, args...); failure.KindOf(err) != failure.Usage {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// TestIdleIsTold: 0 is outside of the range 2-10, and meant.
func TestIdleIsTold(t *testing.T) {
	yaml := manifest("  minReplicaCount: 2\n  maxReplicaCount: 10\n  idleReplicaCount: 0\n", trigger(queue, "2", ""))
	if stdout, _, err := run(t, yaml, "-f", "-"); err != nil || !strings.Contains(stdout, "(range 2-10, idle 0)") {
		t.Errorf("%v\n%s", err, stdout)
	}
}

// TestUnreadIsToldOnce: the table tells what could not be read, a program's
// output has it in the document and on standard error.
func TestUnreadIsToldOnce(t *testing.T) {
	url := serve(t, "testdata/waiting.yaml", "deployments")
	stdout, stderr, err := runCluster(t, url, "hpa/keda-hpa-chat")
	if err != nil || stderr != "" || strings.Count(stdout, "cannot ") != 1 || !strings.Contains(stdout, "cannot list deployments.apps") {
		t.Errorf("%v %q\n%s", err, stderr, stdout)
	}
	if _, stderr, err := runCluster(t, url, "hpa/keda-hpa-chat", "-o", "json"); err != nil || strings.Count(stderr, "cannot ") != 1 {
		t.Errorf("%v %q", err, stderr)
	}
}
