package syncmodel

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

const (
	// leastMemory holds one part of a model of any usual size.
	leastMemory = 16 << 20
	// overhead is what a pod needs beside its buffers: the program itself, and
	// the kernel's buffers of its connections, which count as the pod's too.
	overhead   = 192 << 20
	mostTries  = 100
	mostTime   = 14 * 24 * time.Hour
	lowestPort = 1024
)

// validateJob refuses sizes and times that nobody means. They have to be said
// here: what a Job is refused for is seen only after it was made.
func (o *options) validateJob() error {
	if o.retries < 0 || o.retries > mostTries {
		return failure.New(failure.Usage, fmt.Sprintf("give a number from 0 to %d", mostTries), "read --retries: %d is not a number of retries", o.retries)
	}
	if o.deadline < time.Minute || o.deadline > mostTime {
		return failure.New(failure.Usage, "give a time from 1m to 336h", "read --deadline: %v is not a time for a Job", o.deadline)
	}
	if o.metrics != 0 && (o.metrics < lowestPort || o.metrics > 65535) {
		return failure.New(failure.Usage, "give a port from 1024 to 65535; the pod does not run as root", "read --metrics-port: %d is not a port for a pod", o.metrics)
	}
	for flag, value := range map[string]struct{ got, most int }{"--parallel": {o.plan.Parallel, record.MaxParallel}, "--workers": {o.plan.Workers, record.MaxWorkers}} {
		if value.got < 1 || value.got > value.most {
			return failure.New(failure.Usage, fmt.Sprintf("give a number from 1 to %d", value.most), "read %s: %d is out of range", flag, value.got)
		}
	}
	if o.push != "" {
		if err := record.CheckURL(o.push); err != nil {
			return failure.New(failure.Usage, "write it as http://host:port", "read --push-gateway: %w", err)
		}
	}
	quantity, err := resource.ParseQuantity(o.memory)
	if err != nil {
		return failure.New(failure.Usage, "write it as 256Mi or 1Gi", "read --memory: %q is not a quantity", o.memory)
	}
	o.plan.MemoryBytes = quantity.Value()
	if o.plan.MemoryBytes < leastMemory || o.plan.MemoryBytes > record.MaxMemory {
		return failure.New(failure.Usage, "give a quantity from 16Mi to 64Gi", "read --memory: %s is out of range", o.memory)
	}
	return nil
}

// validateLocal refuses what only a Job can do.
func (o *options) validateLocal() error {
	if o.store.Secret != "" || o.hubSecret != "" {
		return failure.New(failure.Usage, "set "+keyToken+" and the AWS variables in this environment instead", "sync-model: --local does not read Secrets of a cluster")
	}
	flag := o.network.JobOnly()
	switch {
	case o.plan.Workers > 1:
		flag = "--workers"
	case o.metrics != 0:
		flag = "--metrics-port"
	case o.push != "":
		flag = "--push-gateway"
	case len(o.place.NodeSelector) > 0:
		flag = "--node-selector"
	case len(o.place.Tolerations) > 0:
		flag = "--toleration"
	}
	if flag == "" {
		return nil
	}
	hint := ""
	if strings.HasPrefix(flag, "--proxy") {
		hint = "set HTTPS_PROXY in this environment instead"
	} else if flag == "--ca-configmap" {
		hint = "give --ca-bundle FILE instead"
	}
	return failure.New(failure.Usage, cmp.Or(hint, "leave it out, or leave out --local"), "read %s: it is for a Job, not for --local", flag)
}
