package keda

import (
	"fmt"
	"testing"
	"time"
)

// at is the moment of these tests; ago counts back from it.
func at() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func ago(seconds int) string {
	return at().Add(-time.Duration(seconds) * time.Second).Format(time.RFC3339)
}

func TestStep(t *testing.T) {
	on, off, failed := LoopActivity{Active: true}, LoopActivity{}, LoopActivity{Failed: true}
	partial := LoopActivity{Active: true, Failed: true}
	tests := map[string]struct {
		object   string
		current  int32
		activity LoopActivity
		want     StepReason
		to       int32
	}{
		"active at a size":                 {`{}`, 3, on, StepActive, 3},
		"active at zero, one step":         {`{}`, 0, on, StepActivates, 1},
		"active at zero, to the minimum":   {`{"spec":{"minReplicaCount":2}}`, 0, on, StepActivates, 2},
		"active below the minimum, idle":   {`{"spec":{"minReplicaCount":3,"idleReplicaCount":0}}`, 1, on, StepActivates, 3},
		"active below the minimum":         {`{"spec":{"minReplicaCount":3}}`, 1, on, StepActive, 1},
		"active, another fails":            {`{}`, 3, partial, StepPartialError, 3},
		"active at zero, another fails":    {`{}`, 0, partial, StepActivates, 1},
		"inactive, fails":                  {`{}`, 3, failed, StepTriggerError, 3},
		"inactive, fails, fallback":        {`{"spec":{"fallback":{"replicas":5}}}`, 3, failed, StepAwaitsFallback, 3},
		"inactive, fails, fallback to 0":   {`{"spec":{"fallback":{"replicas":0}}}`, 3, failed, StepDeactivates, 0},
		"never active":                     {`{}`, 3, off, StepDeactivates, 0},
		"inactive at zero":                 {`{}`, 0, off, StepRests, 0},
		"at the end of the cooldown":       {`{"status":{"lastActiveTime":"` + ago(300) + `"}}`, 3, off, StepCoolsDown, 3},
		"after the cooldown":               {`{"status":{"lastActiveTime":"` + ago(301) + `"}}`, 3, off, StepDeactivates, 0},
		"initial cooldown":                 {`{"metadata":{"creationTimestamp":"` + ago(60) + `"},"spec":{"initialCooldownPeriod":60}}`, 1, off, StepCoolsDown, 1},
		"after the initial cooldown":       {`{"metadata":{"creationTimestamp":"` + ago(61) + `"},"spec":{"initialCooldownPeriod":60}}`, 1, off, StepDeactivates, 0},
		"a size above idle":                {`{"spec":{"minReplicaCount":2,"idleReplicaCount":1}}`, 5, off, StepDeactivates, 1},
		"at idle":                          {`{"spec":{"minReplicaCount":2,"idleReplicaCount":1}}`, 1, off, StepRests, 1},
		"below the minimum":                {`{"spec":{"minReplicaCount":4}}`, 1, off, StepRaises, 4},
		"at the minimum":                   {`{"spec":{"minReplicaCount":4}}`, 4, off, StepRests, 4},
		"paused":                           {`{"metadata":{"annotations":{"autoscaling.keda.sh/paused":"true"}}}`, 3, off, StepPaused, 3},
		"not paused":                       {`{"metadata":{"annotations":{"autoscaling.keda.sh/paused":"false"}}}`, 3, on, StepActive, 3},
		"paused at 5":                      {`{"metadata":{"annotations":{"autoscaling.keda.sh/paused-replicas":"5"}}}`, 3, off, StepPaused, 5},
		"paused at no number":              {`{"metadata":{"annotations":{"autoscaling.keda.sh/paused-replicas":"x"}}}`, 3, off, StepPaused, 3},
		"in paused":                        {`{"metadata":{"annotations":{"autoscaling.keda.sh/paused-scale-in":"true"}}}`, 3, off, StepPausedIn, 3},
		"out paused":                       {`{"metadata":{"annotations":{"autoscaling.keda.sh/paused-scale-out":"true"}}}`, 0, on, StepPausedOut, 0},
		"forced":                           {`{"metadata":{"annotations":{"autoscaling.keda.sh/force-activation":"true"}}}`, 0, off, StepActivates, 1},
		"keda#804, no cooldown to minimum": {`{"spec":{"minReplicaCount":1,"cooldownPeriod":30},"status":{"lastActiveTime":"` + ago(999) + `"}}`, 5, off, StepRests, 5},
		"keda#737, no cooldown to minimum": {`{"spec":{"minReplicaCount":2}}`, 5, off, StepRests, 5},
		"keda#6145, inactive at a minimum": {`{"spec":{"minReplicaCount":1}}`, 4, off, StepRests, 4},
		"keda#8172, idle 1 below 2":        {`{"spec":{"minReplicaCount":2,"idleReplicaCount":1}}`, 2, off, StepDeactivates, 1},
		"keda#2619, back when active":      {`{"spec":{"minReplicaCount":2,"idleReplicaCount":1}}`, 1, on, StepActivates, 2},
		"keda#6887, no fallback":           {`{"spec":{"minReplicaCount":1,"maxReplicaCount":90}}`, 7, failed, StepTriggerError, 7},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := parse(t, test.object).Step(Newest(), test.current, test.activity, at())
			if got.Reason != test.want || got.To != test.to {
				t.Errorf("got %s to %d, want %s to %d", got.Reason, got.To, test.want, test.to)
			}
			if test.want == StepCoolsDown && (got.CooldownEnds == nil || got.CooldownEnds.Before(at())) {
				t.Errorf("got cooldown end %v", got.CooldownEnds)
			}
		})
	}
}

// TestStepVersions: what a version does not know has no effect in it.
func TestStepVersions(t *testing.T) {
	fallback := parse(t, `{"spec":{"fallback":{"replicas":5}}}`)
	// keda#6659: up to 2.16 the operator wrote the fallback's size itself.
	if got := fallback.Step(Version{2, 16, 1}, 3, LoopActivity{Failed: true}, at()); got.Reason != StepWritesFallback || got.To != 5 {
		t.Errorf("2.16: got %+v", got)
	}
	if got := fallback.Step(Version{2, 17, 0}, 3, LoopActivity{Failed: true}, at()); got.Reason != StepAwaitsFallback {
		t.Errorf("2.17: got %+v", got)
	}
	for annotation, activity := range map[string]LoopActivity{"paused-scale-in": {}, "paused-scale-out": {Active: true}, "force-activation": {}} {
		so := parse(t, fmt.Sprintf(`{"metadata":{"annotations":{"autoscaling.keda.sh/%s":"true"}}}`, annotation))
		current := int32(1)
		if activity.Active || annotation == "force-activation" {
			current = 0
		}
		plain := parse(t, `{}`).Step(Newest(), current, activity, at())
		if got := so.Step(Version{2, 17, 2}, current, activity, at()); got.Reason != plain.Reason || got.To != plain.To {
			t.Errorf("%s in 2.17: got %+v", annotation, got)
		}
		if got := so.Step(Version{2, 18, 0}, current, activity, at()); got.Reason == plain.Reason {
			t.Errorf("%s in 2.18: got %+v", annotation, got)
		}
	}
}
