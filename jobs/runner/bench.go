package runner

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/bench"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// ReportKey is the key of the report in its ConfigMap.
const ReportKey = "report.json"

// ReportName is the ConfigMap that holds the report of a run.
func ReportName(run string) string { return "inference-bench-" + run }

// saveTime is how long a report may take to save after the run was stopped.
const saveTime = 20 * time.Second

// BenchEnd is the result of bench's Job: the report itself is in a ConfigMap.
type BenchEnd struct {
	Run       string `json:"run"`
	ConfigMap string `json:"config_map"`
}

func runBench(ctx context.Context, process Process, data []byte, emit func(record.Event)) (any, error) {
	plan, err := decode[record.BenchPlan](data, record.KindBenchPlan)
	if err != nil {
		return nil, err
	}
	here, err := needJob(process, "kubectl inference bench", "save report")
	if err != nil {
		return nil, err
	}
	kept := keeper{client: here.client, pod: here.pod, name: ReportName(plan.Run), emit: emit}
	before, err := kept.load(ctx)
	if err != nil {
		return nil, err
	}
	report, err := bench.Run(ctx, plan, bench.Deps{
		Emit: emit, Getenv: process.Getenv, ToolVersion: process.Version, Cgroup: cgroup(),
		Pod: here.pod.Name, Before: before, Checkpoint: kept.checkpoint,
	})
	if len(report.Cases) == 0 {
		return nil, err
	}
	// What was measured is kept although the run failed or was stopped.
	saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	if saveErr := kept.save(saving, report); saveErr != nil {
		return nil, failure.Wrap(saveErr, "keep the report")
	}
	return BenchEnd{Run: plan.Run, ConfigMap: kept.name}, err
}

// LocalBench runs a bench here and returns the report, which is there also when
// a case failed.
func LocalBench(ctx context.Context, getenv func(string) string, version string, data []byte, records io.Writer, emit func(record.Event)) (json.RawMessage, error) {
	plan, err := decode[record.BenchPlan](data, record.KindBenchPlan)
	if err != nil {
		return nil, err
	}
	if getenv, err = tidy(getenv, emit, plan.Target.APIKeyEnv); err != nil {
		return nil, err
	}
	report, err := bench.Run(ctx, plan, bench.Deps{Emit: emit, Getenv: getenv, ToolVersion: version, Records: records, Cgroup: cgroup()})
	if len(report.Cases) == 0 {
		return nil, err
	}
	result, encodeErr := record.Encode(report)
	if encodeErr != nil {
		return nil, encodeErr
	}
	return result, err
}

// cgroup is the process's own cgroup where it has a namespace of its own, as in
// a pod under cgroup v2; elsewhere throttling stays unknown.
func cgroup() fs.FS {
	if _, err := os.Stat("/sys/fs/cgroup/cpu.stat"); err != nil {
		return nil
	}
	return os.DirFS("/sys/fs/cgroup")
}

// keysOf are the variables that a plan names for a credential.
func keysOf(plan []byte) []string {
	var named struct {
		Target struct {
			APIKeyEnv string `json:"api_key_env"`
		} `json:"target"`
	}
	// Another plan names none, and one that is unsound is refused by its job.
	_ = json.Unmarshal(plan, &named)
	return []string{named.Target.APIKeyEnv}
}
