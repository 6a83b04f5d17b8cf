package explain

import (
	"math"
	"slices"
	"strconv"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
)

// setting is one --set: an input of the decision that would be different.
type setting struct {
	text string
	// trigger is "" for a setting of the whole chain.
	trigger, field, value string
	// counts are other counts of replicas; nil for those of the last sync.
	counts *hpa.Replicas
	// seen is what was just read of the HPA's metric at index metric; nil
	// without.
	seen   *hpa.Observation
	metric int
}

const settingHint = "write TRIGGER.value, .threshold, .metricType or .activationThreshold (a trigger is s0 for the first, its name or its label), " +
	"replicas, min, max, idle, cooldown, pollingInterval, or behavior.scaleUp.stabilizationWindowSeconds, .selectPolicy, .tolerance, .policies=100%/30s,4/15s"

func parseSettings(texts []string) ([]setting, error) {
	var settings []setting
	for _, text := range texts {
		one, err := parseSetting(text)
		if err != nil {
			return nil, err
		}
		settings = append(settings, one)
	}
	return settings, nil
}

func parseSetting(text string) (setting, error) {
	key, value, found := strings.Cut(text, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	refuse := func(why string) (setting, error) {
		return setting{}, failure.New(failure.Usage, settingHint, "read --set %q: %s", text, why)
	}
	if !found || key == "" || value == "" {
		return refuse("not KEY=VALUE")
	}
	one := setting{text: key + "=" + value, field: wholeField(key), value: value}
	switch one.field {
	case "replicas", "min", "max", "idle":
		if n, err := strconv.ParseInt(value, 10, 32); err != nil || n < 0 {
			return refuse("not a count of replicas")
		}
		return one, nil
	case "cooldown", "pollingInterval":
		one.value = strings.TrimSuffix(value, "s")
		if n, err := strconv.ParseInt(one.value, 10, 32); err != nil || n < 0 || n == 0 && one.field == "pollingInterval" {
			return refuse("not a number of seconds")
		}
		return one, nil
	}
	if strings.HasPrefix(key, "behavior.") {
		if err := setBehavior(&autoscalingv2.HorizontalPodAutoscalerBehavior{}, key, value); err != nil {
			return refuse(err.Error())
		}
		return one, nil
	}
	dot := strings.LastIndex(key, ".")
	if dot <= 0 {
		return refuse("there is no such setting")
	}
	one.trigger, one.field = key[:dot], key[dot+1:]
	switch one.field {
	case "value":
		if n, err := number64(value); err != nil || n < 0 {
			return refuse("the value is no number of 0 or more")
		}
	case "threshold", "target":
		one.field = "threshold"
		if n, err := number64(value); err != nil || n < 0.0005 {
			return refuse("a threshold is a number of at least 0.001")
		}
	case "activationThreshold":
		if _, err := number64(value); err != nil {
			return refuse("an activationThreshold is a number")
		}
	case "metricType":
		types := []string{string(autoscalingv2.AverageValueMetricType), string(autoscalingv2.ValueMetricType)}
		at := slices.IndexFunc(types, func(t string) bool { return strings.EqualFold(t, value) })
		if at < 0 {
			return refuse("a metricType is AverageValue or Value")
		}
		one.value = types[at]
	default:
		return refuse("a trigger has no " + one.field)
	}
	return one, nil
}

// wholeField is the setting of a whole chain that a key means by its short name
// or by that of the ScaledObject's field; other keys stay as they are.
func wholeField(key string) string {
	for field, names := range map[string][]string{
		"replicas": {"replicas"}, "min": {"min", "minReplicaCount", "minReplicas"}, "max": {"max", "maxReplicaCount", "maxReplicas"},
		"idle": {"idle", "idleReplicaCount"}, "cooldown": {"cooldown", "cooldownPeriod"}, "pollingInterval": {"pollingInterval"},
	} {
		if slices.Contains(names, key) {
			return field
		}
	}
	return key
}

// number64 reads a finite number; a percent sign behind it is let pass.
func number64(text string) (float64, error) {
	value, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err == nil && (math.IsNaN(value) || math.IsInf(value, 0) || math.Abs(value) > 1e12) {
		err = strconv.ErrRange
	}
	return value, err
}

// metricsOf returns the indexes of the triggers that the setting means: an
// index (s0) before a name, a name before a label, a label before a metric.
// Where no ScaledObject tells the indexes, KEDA's metrics have them in their
// names, and those of a plain HPA count in their order.
func (s setting) metricsOf(triggers []record.ScalingTrigger) []int {
	for _, matches := range []func(record.ScalingTrigger) bool{
		func(t record.ScalingTrigger) bool {
			return t.Index != nil && strings.EqualFold(s.trigger, "s"+strconv.Itoa(*t.Index))
		},
		func(t record.ScalingTrigger) bool {
			return t.Index == nil && strings.HasPrefix(t.Metric, strings.ToLower(s.trigger)+"-") && isIndex(s.trigger)
		},
		func(t record.ScalingTrigger) bool { return t.Name != "" && strings.EqualFold(s.trigger, t.Name) },
		func(t record.ScalingTrigger) bool { return strings.EqualFold(s.trigger, t.Label) },
		func(t record.ScalingTrigger) bool { return strings.EqualFold(s.trigger, t.Metric) },
	} {
		var found []int
		for i, trigger := range triggers {
			if matches(trigger) {
				found = append(found, i)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	indexed := slices.ContainsFunc(triggers, func(t record.ScalingTrigger) bool { return t.Index != nil || isIndex(cutIndex(t.Metric)) })
	if n, err := strconv.Atoi(strings.TrimLeft(s.trigger, "sS")); !indexed && err == nil && isIndex(s.trigger) && n < len(triggers) {
		return []int{n}
	}
	return nil
}

// isIndex says whether a text is s0, s1 and so on.
func isIndex(text string) bool {
	if len(text) < 2 || (text[0] != 's' && text[0] != 'S') {
		return false
	}
	n, err := strconv.ParseUint(text[1:], 10, 16)
	return err == nil && strconv.FormatUint(n, 10) == text[1:]
}

// cutIndex is what a metric's name begins with: s0 of s0-prometheus.
func cutIndex(metric string) string {
	before, _, _ := strings.Cut(metric, "-")
	return before
}

// matched refuses settings whose trigger is in none of the chains, or of which
// a chain has two.
func matched(settings []setting, chains []record.ScalingChain) error {
	for _, one := range settings {
		if one.trigger == "" {
			continue
		}
		found, names := 0, []string{}
		for _, c := range chains {
			found = max(found, len(one.metricsOf(c.Triggers)))
			for _, t := range c.Triggers {
				names = append(names, triggerName(t))
			}
		}
		switch {
		case found == 0:
			return failure.New(failure.Usage, "its triggers are: "+strings.Join(names, ", "), "read --set %q: there is no trigger %q", one.text, one.trigger)
		case found > 1:
			return failure.New(failure.Usage, "say which by its number: "+strings.Join(names, ", "), "read --set %q: %d triggers are called %q", one.text, found, one.trigger)
		}
	}
	return nil
}
