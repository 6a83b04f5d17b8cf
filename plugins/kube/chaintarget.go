package kube

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
)

// Target is what the user named: TYPE/NAME, or a bare NAME with Type "".
type Target struct {
	Type, Name string
}

// String is the target as it is typed.
func (t Target) String() string {
	if t.Type == "" {
		return t.Name
	}
	return t.Type + "/" + t.Name
}

// ParseTarget reads TYPE/NAME, TYPE NAME or NAME.
func ParseTarget(args []string) (Target, error) {
	refuse := func() (Target, error) {
		return Target{}, failure.New(failure.Usage, "name one link of the chain: isvc/NAME, llmisvc/NAME, so/NAME, hpa/NAME or deploy/NAME",
			"read target %q: not TYPE/NAME", strings.Join(args, " "))
	}
	var target Target
	switch len(args) {
	case 1:
		kind, name, found := strings.Cut(args[0], "/")
		if !found {
			kind, name = "", args[0]
		} else if kind == "" {
			return refuse()
		}
		target = Target{kind, name}
	case 2:
		target = Target{args[0], args[1]}
		if target.Type == "" {
			return refuse()
		}
	default:
		return refuse()
	}
	if target.Name == "" || strings.Contains(target.Name, "/") || strings.Contains(target.Type, "/") {
		return refuse()
	}
	return target, nil
}

// chainKind is a kind that chains are made of.
type chainKind struct {
	group, kind, resource string
	short                 []string
}

// chainKinds are in the order in which a bare NAME is looked for.
func chainKinds() []chainKind {
	return []chainKind{
		{"serving.kserve.io", "InferenceService", "inferenceservices", []string{"isvc"}},
		{"serving.kserve.io", "LLMInferenceService", "llminferenceservices", []string{"llmisvc"}},
		{"keda.sh", "ScaledObject", "scaledobjects", []string{"so"}},
		{"autoscaling", "HorizontalPodAutoscaler", "horizontalpodautoscalers", []string{"hpa"}},
		{"apps", "Deployment", "deployments", []string{"deploy"}},
	}
}

// kindOf finds the kind behind the type that a user writes, without asking the
// server: these kinds can be meant while their API group is not installed.
func kindOf(text string) (chainKind, bool) {
	name, group, _ := strings.Cut(strings.ToLower(text), ".")
	for _, kind := range chainKinds() {
		if group != "" && group != kind.group && !strings.HasSuffix(group, "."+kind.group) {
			continue
		}
		if name == kind.resource || name == strings.ToLower(kind.kind) || slices.Contains(kind.short, name) {
			return kind, true
		}
	}
	return chainKind{}, false
}

// refOf turns a target into a reference, with the mapper's help for kinds that
// are not known here. The namespace is the chain's.
func refOf(target Target, namespace string, mapper func() (meta.RESTMapper, error)) (chain.Ref, error) {
	if known, ok := kindOf(target.Type); ok {
		return chain.Ref{APIVersion: known.group + "/", Kind: known.kind, Namespace: namespace, Name: target.Name}, nil
	}
	m, err := mapper()
	if err != nil {
		return chain.Ref{}, err
	}
	resource, group := schema.ParseResourceArg(strings.ToLower(target.Type))
	if resource == nil {
		resource = &schema.GroupVersionResource{Group: group.Group, Resource: group.Resource}
	}
	kind, err := m.KindFor(*resource)
	if meta.IsNoMatchError(err) && noMatchHint(err) == "" {
		return chain.Ref{}, failure.New(failure.NotFound, typesHint, "find %s: this cluster has no type %q", target, target.Type)
	}
	if err != nil {
		return chain.Ref{}, Explain(err, "find %s", target)
	}
	return chain.Ref{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: namespace, Name: target.Name}, nil
}

// typesHint names what a TARGET may be.
const typesHint = "use isvc/NAME, llmisvc/NAME, so/NAME, hpa/NAME, deploy/NAME or another type with a scale; `kubectl api-resources` lists the types"

// ChainsOf returns the chains of saved objects that target is a link of. A bare
// name means the first kind, from the root down, that has such an object. A
// type that is not known here is that of a link, by its kind in the singular or
// in the plural.
func ChainsOf(objects chain.Objects, target Target) []chain.Chain {
	for _, kind := range chainKinds() {
		if known, ok := kindOf(target.Type); target.Type != "" && (!ok || known.kind != kind.kind) {
			continue
		}
		if found := objects.Find(chain.Ref{APIVersion: kind.group + "/", Kind: kind.kind, Name: target.Name}); len(found) > 0 {
			return found
		}
	}
	typed, _, _ := strings.Cut(strings.ToLower(target.Type), ".")
	if _, known := kindOf(target.Type); known {
		return nil
	}
	var found []chain.Chain
	for _, link := range objects.All() {
		if slices.ContainsFunc(link.Links(), func(r chain.Ref) bool { return r.Name == target.Name && (target.Type == "" || isTyped(typed, r.Kind)) }) {
			found = append(found, link)
		}
	}
	return found
}

// isTyped says whether a user may mean a kind by a type.
func isTyped(typed, kind string) bool {
	kind = strings.ToLower(kind)
	if typed == kind || typed == kind+"s" {
		return true
	}
	short := map[string]string{"leaderworkerset": "lws", "statefulset": "sts", "replicaset": "rs"}[kind]
	return short != "" && typed == short
}
