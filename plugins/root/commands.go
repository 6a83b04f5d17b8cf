package root

import (
	"github.com/spf13/cobra"

	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// loopCommands are the steps from a model revision to a tuned scaler, in order.
func loopCommands(factory *kube.Factory, streams *term.Streams) []*cobra.Command {
	return nil
}

// whyCommands explain and check what is there.
func whyCommands(factory *kube.Factory, streams *term.Streams) []*cobra.Command {
	return nil
}
