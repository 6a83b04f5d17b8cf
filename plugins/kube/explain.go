package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// Explain puts an error of the API server into the words of a failure: act is
// what was tried, such as "get scaledobject a/b". An error that is a failure
// already keeps its kind and its hint.
func Explain(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	act := fmt.Sprintf(format, args...)
	var known *failure.Error
	if errors.As(err, &known) {
		return failure.Wrap(err, "%s", act)
	}
	kind, hint := classify(err)
	return failure.New(kind, hint, "%s: %w", act, short(err))
}

func classify(err error) (failure.Kind, string) {
	switch {
	case errors.Is(err, context.Canceled):
		return failure.Interrupted, ""
	case apierrors.IsUnauthorized(err):
		return failure.Denied, "log in to the cluster again; `kubectl auth whoami` shows who the API server thinks you are"
	case apierrors.IsForbidden(err):
		return failure.Denied, forbiddenHint(err)
	case meta.IsNoMatchError(err):
		return failure.NotFound, noMatchHint(err)
	case apierrors.IsNotFound(err):
		return failure.NotFound, notFoundHint(err)
	case apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.IsServiceUnavailable(err), apierrors.IsTooManyRequests(err):
		return failure.Unreachable, "the API server is there but busy: try again, or raise --request-timeout"
	case isNetwork(err):
		return failure.Unreachable, "check that the cluster runs and that --context and --kubeconfig name the right one: `kubectl cluster-info`"
	}
	return failure.Failed, ""
}

// forbiddenHint names the permission that is missing as the command that
// checks it.
func forbiddenHint(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return "ask for the permission, or use another --context"
	}
	details := status.Status().Details
	resource := details.Kind
	if details.Group != "" {
		resource += "." + details.Group
	}
	verb, scope := "get", ""
	// The message is `... is forbidden: User "x" cannot list resource "pods/log"
	// in API group "" in the namespace "a"`, or `... at the cluster scope`.
	if _, rest, found := strings.Cut(status.Status().Message, " cannot "); found {
		verb, _, _ = strings.Cut(rest, " ")
		if _, sub, ok := strings.Cut(quotedAfter(rest, " resource "), "/"); ok {
			scope += " --subresource=" + sub
		}
		if namespace := quotedAfter(rest, " in the namespace "); namespace != "" {
			scope += " -n " + namespace
		}
	}
	return fmt.Sprintf("ask for the permission; `kubectl auth can-i %s %s%s` says when you have it", verb, resource, scope)
}

// quotedAfter returns what stands in quotes behind mark, or "".
func quotedAfter(text, mark string) string {
	_, rest, found := strings.Cut(text, mark+`"`)
	quoted, _, closed := strings.Cut(rest, `"`)
	if !found || !closed {
		return ""
	}
	return quoted
}

// installHint says which project an absent API group belongs to.
func installHint(group string) string {
	switch group {
	case "keda.sh":
		return "KEDA is not installed in this cluster: https://keda.sh/docs/latest/deploy"
	case "serving.kserve.io":
		return "KServe is not installed in this cluster: https://kserve.github.io/website"
	}
	return ""
}

func noMatchHint(err error) string {
	var resource *meta.NoResourceMatchError
	if errors.As(err, &resource) {
		return installHint(resource.PartialResource.Group)
	}
	var kind *meta.NoKindMatchError
	if errors.As(err, &kind) {
		return installHint(kind.GroupKind.Group)
	}
	return ""
}

func notFoundHint(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}
	details := status.Status().Details
	if details.Name == "" || details.Kind == "" {
		// The path itself is unknown to the server: the API group is absent.
		return installHint(details.Group)
	}
	resource := details.Kind
	if details.Group != "" {
		resource += "." + details.Group
	}
	return fmt.Sprintf("`kubectl get %s -A` lists what there is; -n chooses the namespace", resource)
}

func isNetwork(err error) bool {
	var network net.Error
	var operation *net.OpError
	var address *url.Error
	return errors.As(err, &operation) || errors.As(err, &network) || errors.As(err, &address)
}

// short drops the request line that client-go puts in front of a connection
// error: the user asked for a service, not for a URL.
func short(err error) error {
	var address *url.Error
	if errors.As(err, &address) && isNetwork(address.Err) {
		host := address.URL
		if parsed, parseErr := url.Parse(address.URL); parseErr == nil {
			host = parsed.Host
		}
		return fmt.Errorf("no answer from %s: %w", host, address.Err)
	}
	return err
}

// Causes returns the field-level causes that the API server gave, if any.
func Causes(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		return status.Status().Details.Causes
	}
	return nil
}
