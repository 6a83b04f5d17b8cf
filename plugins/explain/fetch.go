package explain

import (
	"cmp"
	"context"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
)

// fetch reads what is to be explained: of a cluster, of its past, or of files.
func (o *options) fetch(ctx context.Context) (inputs, error) {
	if len(o.files) > 0 {
		return o.fetchFiles()
	}
	read := o.fetchCluster
	if o.at != nil {
		read = o.fetchPast
	}
	in, err := read(ctx)
	o.warnOfClock(in.at)
	return in, err
}

func (o *options) fetchCluster(ctx context.Context) (inputs, error) {
	began := o.now()
	fetched, err := o.factory.FetchChains(ctx, o.namespace, o.target)
	if err != nil {
		return inputs{}, err
	}
	at := o.readSince(began)
	if err := o.fetchMemory(ctx, fetched, at); err != nil {
		return inputs{}, err
	}
	in := inputs{
		namespace:  o.namespace,
		target:     o.target.String(),
		chains:     fetched.Chains,
		kubernetes: fetched.KubernetesVersion,
		unread:     fetched.Unread,
		at:         at,
		raw:        fetched.Raw,
	}
	in.remembering(fetched.Leader)
	if o.record != "" {
		return in, writeRecording(o.record, in, fetched.Raw)
	}
	return in, nil
}

// fetchFiles joins saved objects. Without a TARGET all chains are explained.
func (o *options) fetchFiles() (inputs, error) {
	if o.at != nil {
		found, err := recordingAt(o.files, *o.at)
		if err != nil {
			return inputs{}, err
		}
		o.files = []string{found}
	}
	objects, err := readFiles(o.files, o.streams.In)
	if err != nil {
		return inputs{}, err
	}
	if namespace := o.factory.ChosenNamespace(); namespace != "" {
		all := objects.Namespaces()
		if objects = objects.In(namespace); len(all) > 0 && len(objects.All()) == 0 {
			return inputs{}, failure.New(failure.NotFound, "-n takes one of: "+strings.Join(all, ", "), "explain saved objects: there is nothing to explain in namespace %q", namespace)
		}
	}
	recording, err := readRecording(o.files)
	if err != nil {
		return inputs{}, err
	}
	if target, given := recordedTarget(recording); given && o.target.Name == "" {
		o.target = target
	}
	chains := objects.All()
	if o.target.Name != "" {
		chains, err = o.chosen(objects)
		if err != nil {
			return inputs{}, err
		}
	}
	if len(chains) == 0 {
		return inputs{}, failure.New(failure.Usage, "give at least the HPA, with its status", "explain saved objects: there is no HPA, ScaledObject or workload in them")
	}
	for i := range chains {
		if chains[i].ScaledObject != nil {
			chains[i].KEDAVersion = cmp.Or(o.keda, chains[i].KEDAVersion)
		}
	}
	in := inputs{
		namespace:  namespaceOf(chains),
		target:     o.target.String(),
		chains:     chains,
		kubernetes: o.kubernetes,
		at:         savedAt(objects, o.syncPeriod),
	}
	in.recorded(recording)
	in.remembering(objects.Leader)
	return in, nil
}

// namespaceOf is the namespace of all chains, "" where they have several.
func namespaceOf(chains []chain.Chain) string {
	for _, link := range chains {
		if link.Target.Namespace != chains[0].Target.Namespace {
			return ""
		}
	}
	return chains[0].Target.Namespace
}

func (o *options) chosen(objects chain.Objects) ([]chain.Chain, error) {
	if found := kube.ChainsOf(objects, o.target); len(found) > 0 {
		return found, nil
	}
	return nil, failure.New(failure.NotFound, "leave TARGET away to explain everything in the files", "find %s: the saved objects have no chain with it", o.target)
}
