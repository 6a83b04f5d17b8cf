package envelope

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/runner"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/capacity"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
)

const (
	stdin = "-"
	// A run leaves its report in a ConfigMap of its name.
	configMapPrefix = "inference-bench-"
	reportKey       = "report.json"
	// maxReport is far above any report: a ConfigMap holds 1 MiB.
	maxReport = 64 << 20
)

// read finds a report: "-" is standard input, what has a path separator or
// exists is a file, anything else the name of a run. A CSV holds a report for
// each of its runs.
func (o *options) read(ctx context.Context, source string) ([]record.BenchReport, error) {
	data, err := o.fetch(ctx, source)
	if err != nil {
		return nil, err
	}
	if isCSV(data) {
		reports, err := record.ReadBenchCSV(bytes.NewReader(data))
		if err != nil {
			return nil, failure.Wrap(err, "read %s", named(source))
		}
		return reports, nil
	}
	var report record.BenchReport
	if err := record.Decode(data, record.KindBenchReport, &report); err != nil {
		return nil, failure.Wrap(err, "read %s", named(source))
	}
	return []record.BenchReport{report}, nil
}

// isCSV tells a table from a JSON document: its first line names columns.
func isCSV(data []byte) bool {
	first, _, _ := bytes.Cut(bytes.TrimSpace(data), []byte("\n"))
	return len(first) > 0 && first[0] != '{' && bytes.Contains(first, []byte(","))
}

// once refuses a run that is there already: joined with itself, its curve would
// claim twice the evidence.
func once(sources []capacity.Source, next capacity.Source) error {
	for _, one := range sources {
		if one.Report.Run == next.Report.Run && one.Report.Started.Equal(next.Report.Started) {
			return failure.New(failure.Usage, "name each run once", "read %s: run %s is also in %s", named(next.Name), next.Report.Run, named(one.Name))
		}
	}
	return nil
}

func named(source string) string {
	if source == stdin {
		return "standard input"
	}
	return source
}

func (o *options) fetch(ctx context.Context, source string) ([]byte, error) {
	if source == stdin {
		return limited(o.streams.In, named(source))
	}
	file, err := os.Open(source)
	switch {
	case err == nil:
		defer file.Close()
		return limited(file, source)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, failure.New(failure.Usage, "", "read report: %w", err)
	case strings.ContainsRune(source, os.PathSeparator), strings.HasSuffix(source, ".json"), strings.HasSuffix(source, ".csv"):
		return nil, failure.New(failure.NotFound, "give the path of a saved report, or the name of a run",
			"read report %s: there is no such file", source)
	}
	return o.fetchRun(ctx, source)
}

func limited(r io.Reader, name string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxReport+1))
	if err != nil {
		return nil, failure.New(failure.Usage, "", "read report %s: %w", name, err)
	}
	if len(data) > maxReport {
		return nil, failure.New(failure.Usage, "the request records are another file: give the report", "read report %s: it is larger than %d MiB", name, maxReport>>20)
	}
	return data, nil
}

func (o *options) fetchRun(ctx context.Context, run string) ([]byte, error) {
	if problems := validation.IsDNS1123Subdomain(configMapPrefix + run); len(problems) > 0 {
		return nil, failure.New(failure.Usage, "give the path of a saved report, or the name of a run",
			"read report %s: there is no such file, and a run cannot have that name", run)
	}
	namespace, err := o.factory.Namespace()
	if err != nil {
		return nil, err
	}
	client, err := o.factory.Clientset()
	if err != nil {
		return nil, failure.Wrap(err, "read report of run %s", run)
	}
	configMap, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, configMapPrefix+run, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, failure.New(failure.NotFound,
			fmt.Sprintf("`kubectl get configmaps -n %s` lists the reports, named %sRUN; -n chooses the namespace; a file needs its path", namespace, configMapPrefix),
			"read report of run %s: there is no file %s and no such run in namespace %s", run, run, namespace)
	}
	if err != nil {
		return nil, kube.Explain(err, "read report of run %s", run)
	}
	data, ok, err := runner.SavedReport(configMap)
	if err != nil {
		return nil, failure.Wrap(err, "read report of run %s", run)
	}
	if !ok {
		return nil, failure.New(failure.NotFound, "has the run ended? its report comes last",
			"read report of run %s: configmap %s/%s has no key %s", run, namespace, configMap.Name, reportKey)
	}
	return data, nil
}
