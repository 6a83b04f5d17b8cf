package hpa

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Controller flags as they are unless set; the API does not show them.
const (
	DefaultTolerance             = 0.1
	DefaultDownscaleWindow       = 300 * time.Second
	DefaultSyncPeriod            = 15 * time.Second
	defaultMinReplicas     int32 = 1
)

// Input is all that one sync of the controller depends on.
type Input struct {
	Version Version
	// Now is the time of the sync.
	Now time.Time
	// Slack is how much earlier than Now the sync may have been. With any, the
	// times of rescales are taken as rounded to a second, as objects show them.
	Slack    time.Duration
	Replicas Replicas
	Min, Max int32
	Metrics  []Metric
	// Pods are those that the scale's selector matches; nil where they are
	// unknown. Their names are unique.
	Pods []corev1.Pod
	// Unselectable is InvalidSelector or AmbiguousSelector where the controller
	// cannot tell the pods; "" where it can.
	Unselectable ActiveReason
	// Behavior is nil where spec.behavior is not set; the controller then takes
	// an older path with other rules.
	Behavior *Behavior
	// Flags of the controller; nil fields mean its defaults.
	Flags Flags
	// ScaledToZero is the HPA's condition of that name (from 1.36 on).
	ScaledToZero bool
	// History is nil where the controller's memory is unknown.
	History *History
	// Recalled bounds the memory where History is nil; nil for no bounds.
	Recalled *Recalled
	// MemorySince is when the controller became the leader, as its Lease says
	// (kube-system/kube-controller-manager): it remembers nothing older. Nil
	// where that is unknown.
	MemorySince *time.Time
	// SpecSince is when the spec was last written: what the controller noted
	// before followed other rules. Nil where that is unknown.
	SpecSince *time.Time
	// Rescales are the HPA's own size changes; nil where they are unknown.
	Rescales *Rescales
}

// Replicas are the three counts that the controller reads, each in its place.
type Replicas struct {
	// Spec is scale.spec.replicas.
	Spec int32
	// Status is scale.status.replicas, surge and terminating pods included;
	// a Range because it may have moved since the sync.
	Status Range
	// Ready counts the selector's pods that run and are Ready.
	Ready Range
}

// Flags are settings of kube-controller-manager.
type Flags struct {
	Tolerance       *float64
	DownscaleWindow *time.Duration
	// ConfigurableTolerance is the gate HPAConfigurableTolerance.
	ConfigurableTolerance *bool
	// ScaleToZero is the gate HPAScaleToZero.
	ScaleToZero *bool
	// CPUInitialization and ReadinessDelay are how long the CPU usage of a new
	// pod does not count.
	CPUInitialization, ReadinessDelay *time.Duration
	// PodLevelResources is the gate of that name.
	PodLevelResources *bool
}

func (f Flags) tolerance() float64 {
	if f.Tolerance != nil {
		return *f.Tolerance
	}
	return DefaultTolerance
}

func (f Flags) downscaleWindow() time.Duration {
	if f.DownscaleWindow != nil {
		return *f.DownscaleWindow
	}
	return DefaultDownscaleWindow
}

// MetricType is the type of a metric source.
type MetricType string

const (
	External          MetricType = "External"
	Object            MetricType = "Object"
	Pods              MetricType = "Pods"
	Resource          MetricType = "Resource"
	ContainerResource MetricType = "ContainerResource"
)

// TargetType says what a metric is compared with.
type TargetType string

const (
	// AverageValue divides the total by the number of replicas.
	AverageValue TargetType = "AverageValue"
	// Value compares the total itself.
	Value TargetType = "Value"
	// Utilization is a percentage of the pods' requests.
	Utilization TargetType = "Utilization"
)

// Metric is one entry of spec.metrics and what the controller saw of it.
type Metric struct {
	Type MetricType
	// Name is the metric's name, or the resource's.
	Name string
	// Container is set for ContainerResource, Object (KIND/NAME) for Object.
	Container, Object string
	Target            TargetType
	// TargetMilli is the target in thousandths; for Utilization in percent.
	TargetMilli int64
	Seen        Observation
}

// State says what is known of a metric in a sync.
type State string

const (
	// Unknown: the sync computed no metrics, or nothing says what it saw.
	Unknown State = "unknown"
	// Seen: the metric had a value.
	Seen State = "seen"
	// Failed: the controller could not get it.
	Failed State = "failed"
)

// Observation is a metric's value in a sync, in thousandths.
type Observation struct {
	State State
	// Total is the sum over the returned items, where it is known exactly. With
	// Most it is the smallest that the sum may be, and Most the largest.
	Total, Most *int64
	// Average is the average as the HPA's status shows it. Of External and
	// Object metrics it is rounded up, so the total lies in
	// (status*(Average-1), status*Average]. Of metrics of pods it is truncated,
	// and made before pods without a sample were filled in.
	Average *int64
	// Utilization is the percentage that the HPA's status shows, truncated.
	Utilization *int32
	// Samples are those of a metric of pods, by name; nil where only the
	// average is known.
	Samples map[string]Sample
	// Complete says that every pod that ran had a sample.
	Complete bool
	// Reason is the controller's reason where the metric failed.
	Reason string
}

// SelectPolicy chooses among the policies of a direction.
type SelectPolicy string

const (
	SelectMax      SelectPolicy = "Max"
	SelectMin      SelectPolicy = "Min"
	SelectDisabled SelectPolicy = "Disabled"
)

// PolicyType says whether a policy counts pods or a percentage.
type PolicyType string

const (
	PodsPolicy    PolicyType = "Pods"
	PercentPolicy PolicyType = "Percent"
)

// Policy limits the change within a period.
type Policy struct {
	Type   PolicyType
	Value  int32
	Period time.Duration
}

// Rules are the rules of one direction, defaults filled in.
type Rules struct {
	// Window is the stabilization window; nil means the controller's flag.
	Window   *time.Duration
	Select   SelectPolicy
	Policies []Policy
	// Tolerance overrides the controller's flag where the version reads it.
	Tolerance *float64
}

// Behavior is spec.behavior, defaults filled in.
type Behavior struct {
	Up, Down Rules
}

// Recommendation is a raw proposal that the controller remembers.
type Recommendation struct {
	Time  time.Time
	Count int32
}

// History is the controller's memory of raw proposals, the seed of its first
// sync included. It may hold expired entries.
type History struct {
	Recommendations []Recommendation
}

// Rescale is one change of size by the HPA itself. Delta is positive; its
// direction is that of the list which holds it.
type Rescale struct {
	Time  time.Time
	Delta Range
	// Outdated marks a place that the next one may take. A mark stays, even
	// where an edit makes a period longer that sees the rescale again.
	Outdated bool
}

// Rescales are the HPA's own changes of size while it had a behavior.
type Rescales struct {
	Up, Down []Rescale
	// Told are the times of those whose size before the workload's events gave.
	Told []time.Time
}
