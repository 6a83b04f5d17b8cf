package explain

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
)

// The files of a recording.
const (
	recordingFile = "recording.json"
	objectsFile   = "objects.yaml"
)

// removed stands in the place of what a recording does not keep.
const removed = "REMOVED"

// writeRecording saves what was read of the chains, without secrets, into a
// directory that -f reads.
func writeRecording(dir string, in inputs, raw []unstructured.Unstructured) error {
	act := "record into " + dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return failure.New(failure.Usage, "", "%s: %w", act, pathCause(err))
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return failure.New(failure.Usage, "", "%s: %w", act, pathCause(err))
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() != recordingFile && e.Name() != objectsFile }) {
		return failure.New(failure.Usage, "give a new directory", "%s: it holds other files, which -f would read too", act)
	}
	var objects strings.Builder
	for _, object := range raw {
		if !concerns(in.chains, &object) {
			continue
		}
		data, err := yaml.Marshal(withoutSecrets(&object).Object)
		if err != nil {
			return failure.New(failure.Failed, "", "%s: %w", act, err)
		}
		objects.WriteString("---\n")
		objects.Write(data)
	}
	document := record.ScalingRecording{
		TypeMeta: record.Meta(record.KindScalingRecording), ReadAt: in.at.time.UTC(), Namespace: in.namespace, Target: in.target,
		KubernetesVersion: in.kubernetes, Unread: append([]record.UnreadInput{}, in.unread...),
	}
	for _, link := range in.chains {
		document.KEDAVersion = cmp.Or(document.KEDAVersion, link.KEDAVersion)
	}
	about, err := record.Encode(document)
	if err != nil {
		return failure.New(failure.Failed, "", "%s: %w", act, err)
	}
	for name, data := range map[string][]byte{recordingFile: about, objectsFile: []byte(objects.String())} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return failure.New(failure.Failed, "", "%s: %w", act, pathCause(err))
		}
	}
	return nil
}

func pathCause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// concerns says whether an object is part of the chains: lists bring the whole
// namespace.
func concerns(chains []chain.Chain, object *unstructured.Unstructured) bool {
	about := func(kind, name string) bool {
		return slices.ContainsFunc(chains, func(c chain.Chain) bool {
			return slices.ContainsFunc(append(c.Links(), c.Rivals...), func(r chain.Ref) bool { return r.Kind == kind && r.Name == name })
		})
	}
	switch object.GetKind() {
	case "Lease":
		return object.GetName() == chain.LeaderName
	case "Pod":
		return slices.ContainsFunc(chains, func(c chain.Chain) bool {
			for i := range c.Pods {
				if c.Pods[i].Name == object.GetName() {
					return true
				}
			}
			return false
		})
	case "Event":
		kind, _, _ := unstructured.NestedString(object.Object, "involvedObject", "kind")
		name, _, _ := unstructured.NestedString(object.Object, "involvedObject", "name")
		return about(kind, name)
	}
	return about(object.GetKind(), object.GetName())
}

// withoutSecrets keeps what an explanation reads: of a pod template and of a
// pod no environment, arguments and volumes, of a trigger no credentials.
func withoutSecrets(object *unstructured.Unstructured) *unstructured.Unstructured {
	kept := object.DeepCopy()
	annotations := kept.GetAnnotations()
	for name := range annotations {
		if !strings.HasPrefix(name, "autoscaling.keda.sh/") {
			delete(annotations, name)
		}
	}
	kept.SetAnnotations(annotations)
	switch kept.GetKind() {
	case "ScaledObject":
		triggers, _, _ := unstructured.NestedSlice(kept.Object, "spec", "triggers")
		for _, trigger := range triggers {
			fields, _ := trigger.(map[string]any)
			metadata, _, _ := unstructured.NestedMap(fields, "metadata")
			for key, value := range metadata {
				metadata[key] = harmless(key, value)
			}
			if metadata != nil {
				fields["metadata"] = metadata
			}
		}
		if triggers != nil {
			_ = unstructured.SetNestedSlice(kept.Object, triggers, "spec", "triggers")
		}
	case "Pod":
		bareContainers(kept.Object, "spec")
	case "Lease":
		// Whose it is names a machine; that somebody holds it is enough.
		_ = unstructured.SetNestedField(kept.Object, removed, "spec", "holderIdentity")
	default:
		unstructured.RemoveNestedField(kept.Object, "spec", "template")
	}
	return kept
}

// harmless is a trigger's metadata without what may be a credential.
func harmless(key string, value any) any {
	text, ok := value.(string)
	if !ok {
		return value
	}
	if key == "customHeaders" || key == "queryParameters" || regexp.MustCompile(`(?i)password|token|secret|apikey|connection|credential|username`).MatchString(key) {
		return removed
	}
	if address, err := url.Parse(text); err == nil && address.User != nil {
		address.User = url.User(removed)
		return address.String()
	}
	return value
}

// bareContainers keeps the names and the resources of a pod's containers, and
// where it runs.
func bareContainers(object map[string]any, path ...string) {
	spec, _, _ := unstructured.NestedMap(object, path...)
	bare := map[string]any{}
	for _, field := range []string{"resources", "nodeName"} {
		if value, found := spec[field]; found {
			bare[field] = value
		}
	}
	for _, field := range []string{"initContainers", "containers"} {
		containers, _ := spec[field].([]any)
		var kept []any
		for _, container := range containers {
			fields, _ := container.(map[string]any)
			one := map[string]any{}
			for _, name := range []string{"name", "resources", "restartPolicy"} {
				if value, found := fields[name]; found {
					one[name] = value
				}
			}
			kept = append(kept, one)
		}
		if kept != nil {
			bare[field] = kept
		}
	}
	_ = unstructured.SetNestedMap(object, bare, path...)
}

// readRecording reads what lies beside recorded objects; nil where nothing does.
func readRecording(paths []string) (*record.ScalingRecording, error) {
	for _, path := range paths {
		data, err := os.ReadFile(filepath.Join(path, recordingFile))
		if err != nil {
			continue
		}
		var recording record.ScalingRecording
		if err := record.Decode(data, record.KindScalingRecording, &recording); err != nil {
			return nil, fmt.Errorf("%w (%s)", err, path)
		}
		return &recording, nil
	}
	return nil, nil
}

// recorded lets a recording say what its objects do not: the moment, the
// version, and what could not be read.
func (in *inputs) recorded(recording *record.ScalingRecording) {
	if recording == nil {
		return
	}
	in.at = moment{time: recording.ReadAt, source: sourceObjects, slack: in.at.slack, since: in.at.since, period: in.at.period}
	if in.kubernetes == "" {
		in.kubernetes = recording.KubernetesVersion
	}
	if in.target == "" {
		in.target = recording.Target
	}
	for i := range in.chains {
		if in.chains[i].ScaledObject != nil {
			in.chains[i].KEDAVersion = cmp.Or(in.chains[i].KEDAVersion, recording.KEDAVersion)
		}
	}
	in.unread = append(in.unread, recording.Unread...)
	// A list that was read and was empty leaves no object in a recording.
	read := func(input string) bool {
		return !slices.ContainsFunc(recording.Unread, func(u record.UnreadInput) bool { return u.Input == input })
	}
	for i := range in.chains {
		link := &in.chains[i]
		if link.Pods == nil && link.Workload != nil && link.Workload.Selector != "" && read("pods") {
			link.Pods = []corev1.Pod{}
		}
		if link.HPA != nil && link.Events == nil && read("events") {
			link.Events = []corev1.Event{}
		}
	}
}

// recordedTarget is the target that a recording was made for.
func recordedTarget(recording *record.ScalingRecording) (kube.Target, bool) {
	if recording == nil || recording.Target == "" {
		return kube.Target{}, false
	}
	target, err := kube.ParseTarget([]string{recording.Target})
	return target, err == nil
}
