package syncmodel

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/hub"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/hub/hubtest"
	"github.com/kubectl-inference/kubectl-inference/test/s3server"
)

// local is a Hub and a store that the commands reach from here.
func local(t *testing.T) (*hubtest.Server, *s3server.Server) {
	t.Helper()
	store := s3server.Start(t)
	store.Bucket(t, "models")
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": s3server.AccessKey, "AWS_SECRET_ACCESS_KEY": s3server.SecretKey, "AWS_REGION": "us-east-1"} {
		t.Setenv(name, value)
	}
	return hubtest.Start(t, hub.Options{Models: []hub.Model{{Name: "lab/tiny", Bytes: 4 << 20}}}), store
}

// TestInterruptedLocally: Ctrl-C says what stays, and the next run goes on.
func TestInterruptedLocally(t *testing.T) {
	server, store := local(t)
	server.Inject(hub.Fault{Kind: hub.FaultStall, Path: ".safetensors"})
	args := []string{"lab/tiny", "--revision", "main", "--to", "s3://models/base", "--hub-endpoint", server.URL, "--s3-endpoint", store.URL, "--local"}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	// The weights stall, whatever else was brought by then.
	time.AfterFunc(time.Second, stop)
	factory := kube.NewFactory("test", rest.NoWarnings{})
	root := &cobra.Command{Use: "kubectl-inference", SilenceErrors: true, SilenceUsage: true}
	factory.AddFlags(root.PersistentFlags())
	root.AddCommand(New(factory, term.New(nil, &bytes.Buffer{}, &bytes.Buffer{}, nil), "v1"))
	root.SetArgs(append([]string{"sync-model"}, args...))
	err := root.ExecuteContext(ctx)
	want := "error: sync-model lab/tiny was interrupted\nhint: what was transferred stays in the bucket: the same command goes on from there, and the manifest is written when all is\n"
	if failure.KindOf(err) != failure.Interrupted || failure.Text(err) != want {
		t.Fatalf("kind %d: %s", failure.KindOf(err), failure.Text(err))
	}
	server.Clear()
	if _, _, err := run(t, nil, args...); err != nil {
		t.Errorf("the next run: %v", err)
	}
}
