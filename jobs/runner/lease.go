package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-inference/kubectl-inference/jobs/cluster"
)

// leaseName is that of a sync's Lease: it follows from what is written to, so
// that two Jobs of different names meet, however many workers each has: the
// first worker holds the one that a sync of a single pod does. The others have
// their own, and write to a flat prefix only once the first holds its claim.
func leaseName(bucket, prefix, index string) string {
	sum := sha256.Sum256([]byte(bucket + "\x00" + prefix))
	name := "inference-sync-" + hex.EncodeToString(sum[:8])
	if index != "" && index != "0" {
		name += "-" + index
	}
	return name
}

// holder is the Deps.Hold of a sync in a Job; nil where no Lease can be had,
// because this is not a Job or its pod has no token.
func holder(getenv func(string) string) func(ctx context.Context, bucket, prefix string, waiting func(string)) (func(), error) {
	pod, ok := cluster.Here(getenv)
	if !ok {
		return nil
	}
	config, err := cluster.Config()
	if err != nil {
		return nil
	}
	return func(ctx context.Context, bucket, prefix string, waiting func(string)) (func(), error) {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return cluster.Hold(ctx, client, pod, leaseName(bucket, prefix, getenv(indexEnv)), cluster.DefaultLeaseTimes, waiting)
	}
}
