package runner

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/kubectl-inference/kubectl-inference/jobs/cluster"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/rollout"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

// ColdStartKey is the key of a measured cold start in its ConfigMap.
const ColdStartKey = "coldstart.json"

// ColdStartName is the ConfigMap that holds a predictor's last cold start.
func ColdStartName(name string) string { return "inference-coldstart-" + name }

const (
	// rolloutPoll is how often the pods are looked at.
	rolloutPoll = time.Second
	// answerTime bounds the first request: one token of a model just loaded.
	answerTime = 2 * time.Minute
	// maxManifest bounds the manifest that is read.
	maxManifest = 64 << 20
)

func runRollout(ctx context.Context, process Process, data []byte, emit func(record.Event)) (any, error) {
	plan, err := decode[record.RolloutPlan](data, record.KindRolloutPlan)
	if err != nil {
		return nil, err
	}
	here, err := needJob(process, "kubectl inference rollout", "roll out "+plan.Name)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(here.config)
	if err != nil {
		return nil, err
	}
	discoverer, err := discovery.NewDiscoveryClientForConfig(here.config)
	if err != nil {
		return nil, err
	}
	prefix, err := openPrefix(ctx, plan.Model, emit)
	if err != nil {
		return nil, err
	}
	start, err := rollout.Run(ctx, plan, rollout.Deps{
		Objects: prefix, Client: here.client, Dynamic: objects,
		Mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoverer)),
		HTTP:   &http.Client{Timeout: answerTime}, Emit: emit, Now: time.Now, Poll: rolloutPoll,
	})
	if err != nil {
		return nil, err
	}
	// Measured from an actual start only: a rollout that changed nothing must
	// not wipe out what an earlier one measured. The ConfigMap outlives the Job.
	if len(start.Replicas) > 0 {
		if err := cluster.Save(ctx, here.client, here.pod, ColdStartName(plan.Name), ColdStartKey, start, true); err != nil {
			return nil, failure.Wrap(err, "keep the cold start")
		}
	}
	return start, nil
}

// prefix is a model's prefix in a bucket.
type prefix struct {
	bucket *store.Bucket
	key    string
}

func openPrefix(ctx context.Context, model record.RolloutModel, emit func(record.Event)) (prefix, error) {
	name, key, _ := strings.Cut(strings.TrimPrefix(model.URI, "s3://"), "/")
	bucket, err := store.Open(ctx, store.Config{Bucket: name, Endpoint: model.S3Endpoint, Region: model.S3Region, OnRetry: store.Announce(emit, time.Now)})
	if err != nil {
		return prefix{}, failure.Wrap(store.Explain(err), "open %s", model.URI)
	}
	return prefix{bucket: bucket, key: strings.Trim(key, "/") + "/"}, nil
}

// Get implements rollout.Objects.
func (p prefix) Get(ctx context.Context, name string) ([]byte, error) {
	object, err := p.bucket.Head(ctx, p.key+name)
	if err != nil {
		return nil, store.Explain(err)
	}
	if object.Size > maxManifest {
		return nil, failure.New(failure.Failed, "", "read %s: %d bytes are too many", name, object.Size)
	}
	if object.Size == 0 {
		return nil, nil
	}
	body, err := p.bucket.Get(ctx, p.key+name, 0, object.Size)
	if err != nil {
		return nil, store.Explain(err)
	}
	defer body.Close()
	return io.ReadAll(io.LimitReader(body, object.Size))
}

// Stat implements rollout.Objects.
func (p prefix) Stat(ctx context.Context, name string) (int64, string, error) {
	object, err := p.bucket.Head(ctx, p.key+name)
	return object.Size, object.SHA256(), store.Explain(err)
}
