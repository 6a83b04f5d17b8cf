package prom

import (
	"net"
	"net/url"
	"regexp"
	"strings"
)

// place is a host name of a cluster.
type place struct {
	Namespace, Service string
	// Pod is set for one pod of a headless service.
	Pod string
	// Unsure: a public host may have such a name too.
	Unsure bool
}

var label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// placeOf reads NAME.NAMESPACE, NAME.NAMESPACE.svc[.DOMAIN] and the name of one
// pod in front of those; inside is false for any other host. A bare NAME is
// looked up beside KEDA itself, in the namespace home, where that is known.
func placeOf(host, home string) (at place, inside bool) {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if net.ParseIP(host) != nil || host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return place{}, false
	}
	parts := strings.Split(host, ".")
	for _, part := range parts {
		if !label.MatchString(part) {
			return place{}, false
		}
	}
	switch {
	case len(parts) == 1 && home != "":
		return place{Namespace: home, Service: parts[0]}, true
	case len(parts) == 2:
		return place{Namespace: parts[1], Service: parts[0], Unsure: true}, true
	case len(parts) > 2 && parts[2] == "svc":
		return place{Namespace: parts[1], Service: parts[0]}, true
	case len(parts) > 3 && parts[3] == "svc":
		return place{Namespace: parts[2], Service: parts[1], Pod: parts[0]}, true
	}
	return place{}, false
}

// portOf is the port of an address, that of its scheme where none is written.
func portOf(address *url.URL) string {
	if port := address.Port(); port != "" {
		return port
	}
	if address.Scheme == "https" {
		return "443"
	}
	return "80"
}

// String names the place for people.
func (p place) String() string {
	if p.Pod != "" {
		return "pod " + p.Pod + " of service " + p.Service + " in " + p.Namespace
	}
	return "service " + p.Service + " in " + p.Namespace
}

// path is the place's path under the API server's proxy.
func (p place) path(address *url.URL) string {
	scheme := ""
	if address.Scheme == "https" {
		scheme = "https:"
	}
	kind, name := "services", p.Service
	if p.Pod != "" {
		kind, name = "pods", p.Pod
	}
	return "/api/v1/namespaces/" + p.Namespace + "/" + kind + "/" + scheme + name + ":" + portOf(address) + "/proxy" + strings.TrimSuffix(address.EscapedPath(), "/")
}
