package runner

import (
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubectl-inference/kubectl-inference/jobs/cluster"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// inJob is what a run that needs the API server has of its pod.
type inJob struct {
	pod    cluster.Pod
	config *rest.Config
	client *kubernetes.Clientset
}

// needJob returns it; command is what starts such a Job, act what cannot be done
// elsewhere.
func needJob(process Process, command, act string) (inJob, error) {
	pod, ok := cluster.Here(process.Getenv)
	if !ok {
		return inJob{}, failure.New(failure.Usage, "start it with `"+command+"`", "%s: this is not a Job of the plugin", act)
	}
	config, err := cluster.Config()
	if err != nil {
		return inJob{}, err
	}
	client, err := kubernetes.NewForConfig(config)
	return inJob{pod, config, client}, err
}
