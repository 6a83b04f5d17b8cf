package hold

import (
	"encoding/json"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// state compares the fields of a plan with an object.
type state struct {
	// before, held and other are the changes whose field is as it was, as it is
	// held, and neither.
	before, held, other []record.HoldChange
}

func stateOf(plan record.HoldPlan, object *unstructured.Unstructured) state {
	var s state
	for _, change := range plan.Changes {
		switch now := at(object.Object, change.Path); {
		case same(now, change.Held):
			s.held = append(s.held, change)
		case same(now, change.Before):
			s.before = append(s.before, change)
		default:
			s.other = append(s.other, change)
		}
	}
	return s
}

func at(object map[string]any, path []string) any {
	var now any = object
	for _, name := range path {
		fields, ok := now.(map[string]any)
		if !ok {
			return nil
		}
		now = fields[name]
	}
	return now
}

// same compares two values as JSON has them: a number has no type there.
func same(a, b any) bool { return reflect.DeepEqual(plain(a), plain(b)) }

func plain(value any) any {
	data, err := json.Marshal(value)
	var out any
	if err != nil || json.Unmarshal(data, &out) != nil {
		return value
	}
	return out
}

// patch is a JSON merge patch that gives fields the values that value picks. It
// applies only to the version of the object that was looked at.
func patch(object *unstructured.Unstructured, changes []record.HoldChange, value func(record.HoldChange) any) ([]byte, error) {
	root := map[string]any{"metadata": map[string]any{"resourceVersion": object.GetResourceVersion()}}
	for _, change := range changes {
		fields := root
		for _, name := range change.Path[:len(change.Path)-1] {
			next, ok := fields[name].(map[string]any)
			if !ok {
				next = map[string]any{}
				fields[name] = next
			}
			fields = next
		}
		fields[change.Path[len(change.Path)-1]] = value(change)
	}
	return json.Marshal(root)
}

func held(change record.HoldChange) any   { return change.Held }
func before(change record.HoldChange) any { return change.Before }

func names(changes []record.HoldChange) []string {
	all := []string{}
	for _, change := range changes {
		all = append(all, strings.Join(change.Path, "."))
	}
	return all
}
