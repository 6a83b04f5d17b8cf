package explain

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
	"github.com/kubectl-inference/kubectl-inference/plugins/prom"
)

// freshTimeout is how long one server may take; KEDA itself gives it 3 s.
const freshTimeout = 5 * time.Second

// addFresh asks the servers of the triggers and decides with their answers.
func (o *options) addFresh(ctx context.Context, in inputs, document *record.ScalingExplanation) error {
	client, base, err := o.factory.ServiceProxy()
	if err != nil {
		return err
	}
	reader := prom.Reader{Proxy: client, APIServer: base, Timeout: freshTimeout}
	version, _ := hpa.ParseVersion(in.kubernetes)
	kedaVersion, _ := keda.ParseVersion(document.KEDAVersion)
	for i, link := range in.chains {
		out := &document.Chains[i]
		if link.ScaledObject == nil {
			continue
		}
		out.Now = &record.ScalingNow{ReadAt: o.now().UTC().Truncate(time.Second), Values: o.readFresh(ctx, reader, link, kedaVersion)}
		settings := freshSettings(out.Now.Values, link)
		if link.HPA == nil || out.Decision == nil || len(settings) == 0 {
			continue
		}
		today, observed := decide(link, version, in.at)
		if out.Now.Decision, err = whatIf(link, today, observed, *out, settings, in.at); err != nil {
			return err
		}
	}
	return nil
}

// readFresh asks for each prometheus trigger, all at once.
func (o *options) readFresh(ctx context.Context, reader prom.Reader, link chain.Chain, version keda.Version) []record.FreshValue {
	so := link.ScaledObject
	all := make([]record.FreshValue, len(so.Spec.Triggers))
	var questions sync.WaitGroup
	for i, trigger := range so.Spec.Triggers {
		all[i] = record.FreshValue{Index: i, Label: trigger.Label()}
		if trigger.Query() == "" {
			continue
		}
		questions.Go(func() {
			value, via, err := o.readTrigger(ctx, reader, trigger, link.Target.Namespace, version)
			all[i].Via = via
			if err != nil {
				all[i].Error = err.Error()
				return
			}
			all[i].Value = &value
		})
	}
	questions.Wait()
	values := []record.FreshValue{}
	for i, trigger := range so.Spec.Triggers {
		if trigger.Query() != "" {
			values = append(values, all[i])
		}
	}
	return values
}

func (o *options) readTrigger(ctx context.Context, reader prom.Reader, trigger keda.Trigger, namespace string, version keda.Version) (float64, string, error) {
	var parameters map[string]string
	if ref := trigger.AuthenticationRef; ref != nil && ref.Name != "" {
		var err error
		if parameters, err = o.factory.TriggerParameters(ctx, namespace, ref.Kind, ref.Name); err != nil {
			return 0, "", err
		}
	}
	source, err := prom.FromTrigger(trigger, parameters)
	if err != nil {
		return 0, "", err
	}
	return reader.Read(ctx, source, version, o.now())
}

// freshSettings puts the fresh values, and the counts of now, in the place of
// what the last sync saw. With scalingModifiers no metric is a trigger's own.
func freshSettings(values []record.FreshValue, link chain.Chain) []setting {
	var settings []setting
	if link.ScaledObject.Composite() {
		return nil
	}
	for _, value := range values {
		if value.Value != nil {
			text := strconv.FormatFloat(max(*value.Value, 0), 'f', -1, 64)
			settings = append(settings, setting{text: fmt.Sprintf("s%d.value=%s", value.Index, text), trigger: fmt.Sprintf("s%d", value.Index), field: "value", value: text})
		}
	}
	if len(settings) > 0 && link.Workload != nil {
		counts := hpa.Replicas{Spec: link.Workload.Spec, Status: hpa.Exactly(link.Workload.Status), Ready: hpa.Range{High: link.Workload.Status}}
		switch {
		case link.Pods != nil:
			counts.Ready = hpa.Exactly(chain.Ready(link.Pods))
		case link.Workload.Ready != nil:
			counts.Ready = hpa.Exactly(*link.Workload.Ready)
		}
		settings = append(settings, setting{text: fmt.Sprintf("replicas=%d", counts.Spec), field: "now", counts: &counts})
	}
	return settings
}
