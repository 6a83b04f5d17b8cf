package kedaoracle

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes/scheme"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	"github.com/kedacore/keda/v2/pkg/scalers/authentication"
	"github.com/kedacore/keda/v2/pkg/scaling"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// response is what the Prometheus of these tests answers to one query.
type response struct {
	status int
	body   string
}

// prometheus answers each trigger's query. It runs outside of virtual time and
// keeps no connection, so that time stands still until it has answered.
type prometheus struct {
	mu        sync.Mutex
	responses map[string]response
	url       string
}

func startPrometheus(t *testing.T) *prometheus {
	t.Helper()
	logf.SetLogger(logr.Discard())
	p := &prometheus{responses: map[string]response{}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		answer := p.responses[r.URL.Query().Get("query")]
		p.mu.Unlock()
		w.WriteHeader(answer.status)
		_, _ = w.Write([]byte(answer.body))
	}))
	server.Config.SetKeepAlivesEnabled(false)
	server.Start()
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

func (p *prometheus) set(responses map[string]response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.responses = responses
}

// state is everything that KEDA reads: what a test draws, and what the model
// gets.
type state struct {
	object    map[string]any
	replicas  int32
	ready     int32
	querying  bool
	responses map[string]response
}

// world is KEDA on one state.
type world struct {
	cluster *cluster
	handler scaling.ScaleHandler
}

func newWorld(t *testing.T, s state) *world {
	t.Helper()
	data, err := json.Marshal(s.object)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{object: data, replicas: s.replicas, ready: s.ready, querying: s.querying}
	handler := scaling.NewScaleHandler(c, c, scheme.Scheme, 3*time.Second, 30*time.Second, recorder{}, &authentication.AuthClientSet{})
	return &world{cluster: c, handler: handler}
}

// typed is the stored object as KEDA has it.
func (w *world) typed(t *testing.T) *kedav1alpha1.ScaledObject {
	t.Helper()
	w.cluster.mu.Lock()
	defer w.cluster.mu.Unlock()
	var object kedav1alpha1.ScaledObject
	if err := json.Unmarshal(w.cluster.object, &object); err != nil {
		t.Fatal(err)
	}
	return &object
}

// modelled is the stored object as the product reads it.
func (w *world) modelled(t *testing.T) keda.ScaledObject {
	t.Helper()
	w.cluster.mu.Lock()
	defer w.cluster.mu.Unlock()
	var content map[string]any
	if err := json.Unmarshal(w.cluster.object, &content); err != nil {
		t.Fatal(err)
	}
	object, err := keda.Parse(content)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// observe is the model's look at all external triggers.
func observe(so keda.ScaledObject, s state) []keda.Observed {
	var observed []keda.Observed
	for i, trigger := range so.Spec.Triggers {
		if !trigger.IsResource() {
			observed = append(observed, observeOne(so, s, i))
		}
	}
	return observed
}

func observeOne(so keda.ScaledObject, s state, index int) keda.Observed {
	trigger := so.Spec.Triggers[index]
	answer := s.responses[trigger.Query()]
	reading := keda.ReadPrometheus(keda.Newest(), answer.status, []byte(answer.body), trigger.EmptyIsZero())
	// Without modifiers each external trigger is a metric of the HPA; with
	// them its own metric stays inside KEDA.
	plain := so
	plain.Spec.Advanced = nil
	for _, metric := range plain.Metrics(keda.Newest()) {
		if metric.Trigger == index {
			return so.Observe(keda.Newest(), metric, reading, keda.Sizes{Current: s.replicas, Ready: s.ready})
		}
	}
	panic(fmt.Sprintf("trigger %d has no metric", index))
}

// show is a state for a failure's message.
func show(s state) string {
	object, err := json.Marshal(s.object)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d replicas, %d ready, answers %v, %s", s.replicas, s.ready, s.responses, object)
}
