package explain

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// scaledObjectWith is the ScaledObject with the settings that KEDA's own loop
// reads; the zero value without one.
func scaledObjectWith(link chain.Chain, settings []setting, triggers []record.ScalingTrigger) (keda.ScaledObject, error) {
	if link.ScaledObject == nil {
		for _, one := range settings {
			if ofLoop(one.field) {
				return keda.ScaledObject{}, failure.New(failure.Usage, "it is a setting of a ScaledObject", "ask what if %q: no ScaledObject is in this chain", one.text)
			}
		}
		return keda.ScaledObject{}, nil
	}
	changed := *link.ScaledObject
	changed.Spec.Triggers = slices.Clone(changed.Spec.Triggers)
	for _, one := range settings {
		n := one.count()
		switch one.field {
		case "min":
			changed.Spec.MinReplicaCount = &n
		case "max":
			changed.Spec.MaxReplicaCount = &n
		case "idle":
			changed.Spec.IdleReplicaCount = &n
		case "cooldown":
			changed.Spec.CooldownPeriod = &n
		case "pollingInterval":
			changed.Spec.PollingInterval = &n
		case "activationThreshold":
			for _, i := range one.metricsOf(triggers) {
				setActivation(&changed, triggers[i], one.value)
			}
		}
	}
	if idle := changed.Spec.IdleReplicaCount; idle != nil && *idle >= changed.Min() && slices.ContainsFunc(settings, func(s setting) bool { return s.field == "idle" }) {
		return changed, failure.New(failure.Usage, "set min too", "ask what if: KEDA refuses an idle count of %d that is not below the minimum %d", *idle, changed.Min())
	}
	return changed, nil
}

func ofLoop(field string) bool {
	return slices.Contains([]string{"idle", "cooldown", "pollingInterval", "activationThreshold"}, field)
}

func setActivation(so *keda.ScaledObject, trigger record.ScalingTrigger, value string) {
	if trigger.Index == nil {
		if so.UsesModifiers() {
			modifiers := *so.Spec.Advanced.Modifiers
			modifiers.ActivationTarget = value
			advanced := *so.Spec.Advanced
			advanced.Modifiers, so.Spec.Advanced = &modifiers, &advanced
		}
		return
	}
	source := &so.Spec.Triggers[*trigger.Index]
	source.Metadata = maps.Clone(source.Metadata)
	if source.Metadata == nil {
		source.Metadata = map[string]string{}
	}
	source.Metadata["activationThreshold"] = value
}

// loopWith is KEDA's loop with the settings, at a size. Whether it finds the
// object active follows from the values that the HPA saw and that were set,
// else from its last turn.
func loopWith(link chain.Chain, changed keda.ScaledObject, triggers []record.ScalingTrigger, settings []setting, size int32, at moment) *record.KEDALoop {
	before := *link.ScaledObject
	link.ScaledObject = &changed
	loop := kedaLoopOf(link, at)
	version, _ := kedaVersionOf(link)
	active := activeBy(before, changed, version, triggers)
	if active == nil {
		loop.Active, loop.Next = nil, nil
		return loop
	}
	loop.Active = active
	if slices.ContainsFunc(settings, func(s setting) bool { return s.field == "value" }) {
		loop.Failed = false
	}
	now := at.time
	if now.IsZero() {
		// Saved objects without a time: the cooldown begins now.
		now = time.Unix(0, 0)
		changed.Status.LastActiveTime = &now
	}
	step := changed.Step(version, size, keda.LoopActivity{Active: *active, Failed: loop.Failed}, now)
	loop.Next = kedaStep(&step)
	return loop
}

// activeBy says whether some trigger is above its activation threshold; nil
// where that is not known.
func activeBy(before, changed keda.ScaledObject, version keda.Version, triggers []record.ScalingTrigger) *bool {
	was := map[string]float64{}
	for _, activation := range before.Activations(version) {
		was[activation.Metric] = activation.Above
	}
	all := changed.Activations(version)
	if len(all) == 0 {
		return new(true)
	}
	unknown := false
	for _, activation := range all {
		active, known := false, false
		for _, t := range triggers {
			if t.Metric != activation.Metric || t.ValueLow == nil || t.ValueHigh == nil {
				continue
			}
			active, known = *t.ValueLow > activation.Above, *t.ValueLow > activation.Above || *t.ValueHigh <= activation.Above
		}
		if seen, ok := changed.Status.TriggersActivity[activation.Metric]; ok && !known && was[activation.Metric] == activation.Above {
			active, known = seen.IsActive, true
		}
		if active {
			return new(true)
		}
		unknown = unknown || !known
	}
	if unknown {
		return nil
	}
	return new(false)
}

// settleWithKEDA is where the size goes in the end where KEDA's loop has a part
// in it: from zero it is first made the minimum, and inactive it goes to zero or
// to the idle count in the end, whatever the HPA does before.
func settleWithKEDA(loop *record.KEDALoop, counts record.ReplicaCounts, size int32, low, high hpa.Input, settled *record.SettledSize, at moment) *record.SettledSize {
	if loop == nil || loop.Next == nil {
		return settled
	}
	switch keda.StepReason(loop.Next.Reason) {
	case keda.StepActivates, keda.StepRaises:
		for _, in := range []*hpa.Input{&low, &high} {
			in.Replicas = hpa.Replicas{Spec: loop.Next.To, Status: hpa.Exactly(loop.Next.To), Ready: hpa.Exactly(loop.Next.To)}
			in.Pods = nil
		}
		if settled = settleBoth(low, high, at.sync()); settled != nil {
			settled.Path = append([]record.SizeAt{{Replicas: loop.Next.To}}, settled.Path...)
		}
	case keda.StepCoolsDown, keda.StepDeactivates:
		floor := int32(0)
		if counts.Idle != nil {
			floor = *counts.Idle
		}
		after := 0.0
		if ends := loop.Next.NotBefore; ends != nil && !at.time.IsZero() {
			after = max(0, ends.Sub(at.time).Seconds())
		} else if ends != nil {
			after = loop.Cooldown.Seconds
		}
		settled = &record.SettledSize{Replicas: record.CountRange{Low: floor, High: &floor}, AfterSeconds: after, Path: []record.SizeAt{}}
		if floor != size {
			settled.Path = append(settled.Path, record.SizeAt{Seconds: after, Replicas: floor})
		}
	}
	return settled
}

// noEffect names the settings that change nothing for this object.
func noEffect(so keda.ScaledObject, settings []setting, period time.Duration) []string {
	var notes []string
	floor := so.Min() == 0 || so.Spec.IdleReplicaCount != nil
	cached := slices.ContainsFunc(so.Spec.Triggers, func(t keda.Trigger) bool { return t.UseCachedMetrics })
	for _, one := range settings {
		switch {
		case floor:
		case one.field == "cooldown", one.field == "activationThreshold":
			notes = append(notes, fmt.Sprintf("%s has no effect: it is about 0 replicas or an idle count, and the minimum is %d", one.text, so.Min()))
		case one.field == "pollingInterval" && !cached:
			notes = append(notes, fmt.Sprintf("%s has no effect on the size: from %d to %d replicas the HPA asks at its own pace, every %gs", one.text, so.Min(), so.Max(), period.Seconds()))
		}
	}
	return notes
}

// notePlanned says what an answer about an HPA that is not there supposes.
func notePlanned(what *record.ScalingWhatIf, out record.ScalingChain) {
	if what == nil {
		return
	}
	note := "there is no HPA: asked of the one that KEDA would make"
	if out.State == record.ChainPaused {
		note = "the ScaledObject is paused: as if it were not"
	}
	what.Notes = append(what.Notes, note)
	if out.Replicas.Spec == nil && what.Replicas.Spec == nil {
		from := what.Decision.From
		what.Replicas.Spec = &from
		what.Notes = append(what.Notes, fmt.Sprintf("the workload was not given: from %s, set replicas= for another size", plural(from, "replica", "replicas")))
	}
	var unseen []string
	for i, t := range what.Triggers {
		if t.Reason != string(hpa.NotSeen) {
			continue
		}
		name := t.Metric
		if t.Index != nil {
			name = "s" + strconv.Itoa(*t.Index)
		} else if name == "" {
			name = strconv.Itoa(i)
		}
		unseen = append(unseen, name+".value=")
	}
	if len(unseen) > 0 {
		what.Notes = append(what.Notes, "no value is known: set "+strings.Join(unseen, ", ")+" too")
	}
}
