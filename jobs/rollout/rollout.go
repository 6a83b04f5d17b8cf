// Package rollout carries a rollout plan out: it makes sure that the prefix is
// complete and is the revision that was meant, applies the predictor, follows
// its pods until they serve, sends the first request, and says where the time
// went.
package rollout

import (
	"context"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// Objects is the model's prefix in its store.
type Objects interface {
	// Get returns a whole object below the prefix; the error is a
	// failure.NotFound for one that does not exist.
	Get(ctx context.Context, name string) ([]byte, error)
	// Stat returns the size of an object below the prefix and the SHA-256 it
	// was uploaded with, in hex, "" where the store does not know it.
	Stat(ctx context.Context, name string) (size int64, sha256 string, err error)
}

// Deps are what a rollout works with.
type Deps struct {
	Objects Objects
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	Mapper  meta.RESTMapper
	HTTP    *http.Client
	Emit    func(record.Event)
	Now     func() time.Time
	// Poll is how often the pods are looked at.
	Poll time.Duration
}

type run struct {
	plan record.RolloutPlan
	deps Deps

	started time.Time
	changed bool   // an object was created or configured
	image   string // of the engine in an InferenceService, "" where it names none
}

// Run carries plan out and returns the measured cold start.
func Run(ctx context.Context, plan record.RolloutPlan, deps Deps) (record.ColdStart, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(plan.TimeoutSeconds*float64(time.Second)))
	defer cancel()
	r := &run{plan: plan, deps: deps, started: deps.Now()}
	manifest, err := r.verify(ctx)
	if err != nil {
		return record.ColdStart{}, err
	}
	if err := r.apply(ctx); err != nil {
		return record.ColdStart{}, err
	}
	pods, err := r.follow(ctx)
	if err != nil {
		return record.ColdStart{}, err
	}
	answer, err := r.firstRequest(ctx)
	if err != nil {
		return record.ColdStart{}, err
	}
	return record.ColdStart{
		TypeMeta: record.Meta(record.KindColdStart),
		Name:     plan.Name, Namespace: plan.Namespace,
		Model: plan.Model.URI, ModelID: manifest.ModelID, Revision: manifest.Revision,
		Finished:    deps.Now().UTC(),
		ServedModel: answer.model, MaxModelLen: answer.maxModelLen,
		Replicas: r.starts(pods, answer.at),
	}, nil
}
