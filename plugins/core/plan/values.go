package plan

import (
	"fmt"
	"strconv"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

func refOf(object map[string]any) record.TuningObject {
	return record.TuningObject{APIVersion: text(object, "apiVersion"), Kind: text(object, "kind"), Namespace: text(object, "metadata", "namespace"), Name: text(object, "metadata", "name")}
}

// texts returns a map of strings of the metadata, such as the labels.
func texts(object map[string]any, field string) map[string]string {
	values, _ := at(object, "metadata", field).(map[string]any)
	all := map[string]string{}
	for key, value := range values {
		all[key] = fmt.Sprint(value)
	}
	return all
}

// text returns the string at path, "" where there is none.
func text(object any, path ...string) string {
	value, _ := at(object, path...).(string)
	return value
}

// at returns the value at path, nil where there is none. A number is an index.
func at(value any, path ...string) any {
	for _, key := range path {
		switch node := value.(type) {
		case map[string]any:
			value = node[key]
		case []any:
			index, err := strconv.Atoi(key)
			if err != nil || index < 0 || index >= len(node) {
				return nil
			}
			value = node[index]
		default:
			return nil
		}
	}
	return value
}
