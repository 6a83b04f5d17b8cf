package sandbox

import (
	"os"
	"runtime"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// Supported returns nil where a sandbox can be made.
func Supported() error { return supported(runtime.GOOS, os.Geteuid()) }

func supported(goos string, uid int) error {
	const elsewhere = "set LAB_KUBECONFIG to the kubeconfig of any other cluster, such as one of kind"
	switch {
	case goos != "linux":
		return failure.New(failure.Usage, elsewhere, "start lab: it needs Linux, this is %s", goos)
	case uid != 0:
		return failure.New(failure.Denied, "run it as root, or "+elsewhere, "start lab: it needs root, to make namespaces")
	}
	return nil
}
