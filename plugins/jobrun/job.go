// Package jobrun is the edge to the plugin's in-cluster Jobs: it creates them
// from one template, follows them until they end, and lets a user leave and
// come back. A Job carries its whole plan in its own spec, so what runs is what
// was shown.
package jobrun

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/manifests"
)

// PlanEnv is the environment variable that carries the plan into the pod.
const PlanEnv = "INFERENCE_PLAN"

// MetricsEnv is the address at which the pod serves its metrics.
const MetricsEnv = "INFERENCE_METRICS_ADDRESS"

// Labels of the plugin's Jobs and their pods.
const (
	LabelComponent = "app.kubernetes.io/component"
	LabelName      = "app.kubernetes.io/name"
	LabelRun       = "kubectl-inference.io/run"
)

// container is the name of the template's only container.
const container = "job"

// maxName is the longest name of a Job in bytes: the name becomes the value of
// a label on its pods.
const maxName = validation.LabelValueMaxLength

// Spec says what a Job runs. Command is the subcommand of inference-job and
// names the run's ServiceAccount, inference-COMMAND, unless one is given.
type Spec struct {
	Command        string
	Run            string
	Namespace      string
	Image          string
	PullSecret     string
	ServiceAccount string
	Plan           any
	// Env holds no secrets: they are SecretEnv.
	Env       map[string]string
	SecretEnv []SecretEnv
	ConfigEnv []ConfigEnv
	// CallsAPI mounts the ServiceAccount's token.
	CallsAPI bool
	// Retries is how often a failed pod is replaced.
	Retries int32
	// Final are exit codes that a new pod cannot mend, beside the template's.
	Final []int32
	// Workers is the number of pods, each with an index of its own; up to 1 is
	// one pod without.
	Workers int32
	// Memory is what a pod is given, in bytes, and Deadline the time that the
	// Job may take; 0 leaves the template's.
	Memory   int64
	Deadline time.Duration
	// MetricsPort is where the pod serves Prometheus metrics; 0 is nowhere.
	MetricsPort  int32
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
}

// Name returns the Job's name: deterministic, so that the same run is found
// again rather than started twice. Of a name that would be too long, the end
// gives way to a digest of the whole.
func (s Spec) Name() string {
	name := fmt.Sprintf("inference-%s-%s", s.Command, s.Run)
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	digest := hex.EncodeToString(sum[:4])
	return strings.TrimRight(name[:maxName-len(digest)-1], "-.") + "-" + digest
}

// ValidateRun refuses a name that cannot name a run: it is part of the names of
// objects and the value of a label.
func ValidateRun(run string) error {
	problems := validation.IsDNS1123Subdomain(run)
	if len(run) > maxName {
		problems = append(problems, validation.MaxLenError(maxName))
	}
	if len(problems) > 0 {
		return failure.New(failure.Usage, "use lower-case letters, digits and hyphens", "read the name of the run: %q: %s", run, strings.Join(problems, "; "))
	}
	return nil
}

// Job builds the Job from the template in manifests/jobs.
func (s Spec) Job() (*batchv1.Job, error) {
	if err := ValidateRun(s.Run); err != nil {
		return nil, err
	}
	data, err := fs.ReadFile(manifests.Files, path.Join("jobs", "job.yaml"))
	if err != nil {
		return nil, err
	}
	var job batchv1.Job
	if err := yaml.UnmarshalStrict(data, &job); err != nil {
		return nil, fmt.Errorf("read job template: %w", err)
	}
	plan, err := json.Marshal(s.Plan)
	if err != nil {
		return nil, fmt.Errorf("write plan: %w", err)
	}
	job.Name, job.Namespace = s.Name(), s.Namespace
	for _, labels := range []map[string]string{job.Labels, job.Spec.Template.Labels} {
		labels[LabelComponent] = s.Command
		labels[LabelRun] = s.Run
	}
	job.Spec.BackoffLimit = &s.Retries
	pod := &job.Spec.Template.Spec
	pod.ServiceAccountName = s.ServiceAccount
	if pod.ServiceAccountName == "" {
		pod.ServiceAccountName = "inference-" + s.Command
	}
	pod.AutomountServiceAccountToken = &s.CallsAPI
	if s.PullSecret != "" {
		pod.ImagePullSecrets = []corev1.LocalObjectReference{{Name: s.PullSecret}}
	}
	main := &pod.Containers[0]
	main.Image = s.Image
	main.Args = []string{s.Command}
	s.shape(&job)
	main.Env = s.env(string(plan), main.Resources.Limits.Memory().Value())
	return &job, nil
}

// shape sets what the run needs beside the template's own.
func (s Spec) shape(job *batchv1.Job) {
	pod := &job.Spec.Template.Spec
	main := &pod.Containers[0]
	pod.NodeSelector, pod.Tolerations = s.NodeSelector, s.Tolerations
	for i := range job.Spec.PodFailurePolicy.Rules {
		if codes := job.Spec.PodFailurePolicy.Rules[i].OnExitCodes; codes != nil {
			codes.Values = append(codes.Values, s.Final...)
			slices.Sort(codes.Values)
		}
	}
	if s.Deadline > 0 {
		job.Spec.ActiveDeadlineSeconds = new(int64(s.Deadline.Seconds()))
	}
	if s.Memory > 0 {
		main.Resources.Limits[corev1.ResourceMemory] = *resource.NewQuantity(s.Memory, resource.BinarySI)
		main.Resources.Requests[corev1.ResourceMemory] = *resource.NewQuantity(s.Memory, resource.BinarySI)
	}
	if s.MetricsPort > 0 {
		main.Ports = []corev1.ContainerPort{{Name: "metrics", ContainerPort: s.MetricsPort}}
		// What Prometheus's usual configuration for pods looks for.
		for key, value := range map[string]string{"scrape": "true", "port": strconv.Itoa(int(s.MetricsPort)), "path": "/metrics"} {
			job.Spec.Template.Annotations["prometheus.io/"+key] = value
		}
	}
	if s.Workers > 1 {
		job.Spec.CompletionMode = new(batchv1.IndexedCompletion)
		job.Spec.Completions, job.Spec.Parallelism = &s.Workers, &s.Workers
		job.Spec.BackoffLimit = new(s.Retries * s.Workers)
		// More nodes have more bandwidth.
		pod.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{LabelComponent: s.Command, LabelRun: s.Run}},
		}}
	}
}
