package explain

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/prom"
)

// freshTimeout is how long one server may take unless its trigger says
// otherwise; KEDA itself gives it 3 s.
const freshTimeout = 5 * time.Second

// servers are the Prometheus servers of the triggers, as KEDA reaches them.
type servers struct {
	factory  *kube.Factory
	raw      []unstructured.Unstructured
	reader   prom.Reader
	forwards *kube.Forwards

	mutex sync.Mutex
	auth  map[string]*kube.TriggerAuth
}

// servers makes the way to them: inside the cluster a direct one, from outside
// by the API server. close ends what it opened.
func (o *options) servers(raw []unstructured.Unstructured) (s *servers, end func(), err error) {
	s = &servers{factory: o.factory, raw: raw, reader: prom.Reader{Timeout: freshTimeout}, auth: map[string]*kube.TriggerAuth{}}
	if o.factory.Inside() {
		return s, func() {}, nil
	}
	if s.reader.Proxy, s.reader.APIServer, err = o.factory.ServiceProxy(); err != nil {
		return nil, nil, err
	}
	if s.forwards, err = o.factory.Forwards(); err != nil {
		return nil, nil, err
	}
	s.reader.Forward = s.forwards.Dial
	end = func() {
		s.forwards.Close()
		s.reader.Proxy.CloseIdleConnections()
	}
	return s, end, nil
}

// source is a trigger's server, with the credentials that the trigger knows,
// and the reader to ask it with.
func (s *servers) source(ctx context.Context, link chain.Chain, trigger keda.Trigger, version keda.Version) (prom.Reader, prom.Source, error) {
	var given keda.Credentials
	auth, err := s.authOf(link)
	if err != nil {
		return s.reader, prom.Source{}, err
	}
	if ref := trigger.AuthenticationRef; ref != nil && ref.Name != "" {
		if given, err = auth.Credentials(ctx, ref.Kind, ref.Name); err != nil {
			return s.reader, prom.Source{}, err
		}
	}
	source, err := prom.FromTrigger(trigger, given, version)
	reader := s.reader
	if err == nil && isBare(source.Address) && reader.Proxy != nil {
		reader.Home = auth.Home(ctx).Namespace
	}
	return reader, source, err
}

// isBare says whether a host is one name, which is looked up beside KEDA.
func isBare(address *url.URL) bool {
	return !strings.ContainsAny(address.Hostname(), ".:") && address.Hostname() != "localhost"
}

// authOf is the reader of credentials for a chain, which keeps what it read.
func (s *servers) authOf(link chain.Chain) (*kube.TriggerAuth, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	key := link.Target.Namespace + "/" + link.Target.Kind + "/" + link.Target.Name
	if known := s.auth[key]; known != nil {
		return known, nil
	}
	var workload *unstructured.Unstructured
	for i := range s.raw {
		if s.raw[i].GetKind() == link.Target.Kind && s.raw[i].GetName() == link.Target.Name && s.raw[i].GetNamespace() == link.Target.Namespace {
			workload = &s.raw[i]
		}
	}
	auth, err := s.factory.TriggerAuth(link.Target.Namespace, workload)
	if err == nil {
		s.auth[key] = auth
	}
	return auth, err
}
