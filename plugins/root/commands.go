package root

import (
	"github.com/spf13/cobra"

	"github.com/kubectl-inference/kubectl-inference/plugins/bench"
	"github.com/kubectl-inference/kubectl-inference/plugins/envelope"
	"github.com/kubectl-inference/kubectl-inference/plugins/explain"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/manifests"
	"github.com/kubectl-inference/kubectl-inference/plugins/rollout"
	"github.com/kubectl-inference/kubectl-inference/plugins/syncmodel"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
	"github.com/kubectl-inference/kubectl-inference/plugins/tune"
)

// loopCommands are the steps from a model revision to a tuned scaler, in order.
func loopCommands(factory *kube.Factory, streams *term.Streams, version string) []*cobra.Command {
	return []*cobra.Command{
		syncmodel.New(factory, streams, version),
		rollout.New(factory, streams),
		bench.New(factory, streams, version),
		envelope.New(factory, streams),
		tune.New(factory, streams),
	}
}

// whyCommands explain and check what is there.
func whyCommands(factory *kube.Factory, streams *term.Streams) []*cobra.Command {
	return []*cobra.Command{
		explain.New(factory, streams),
		manifests.New(streams),
	}
}
