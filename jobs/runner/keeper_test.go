package runner

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-inference/kubectl-inference/jobs/cluster"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/stats"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

var server apiserver.Shared

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

// largeReport is a report as real runs leave it: a thousand requests a case,
// whose latencies spread over a decade.
func largeReport(cases int) record.BenchReport {
	random := rand.New(rand.NewPCG(1, 2))
	report := record.BenchReport{TypeMeta: record.Meta(record.KindBenchReport), Run: "large", Cases: []record.CaseReport{}}
	for i := range cases {
		one := record.CaseReport{Case: record.BenchCase{Name: fmt.Sprintf("c%d", i), PromptTokens: 1024, OutputTokens: 128, Concurrency: i + 1}}
		l := &one.Latency
		for _, summary := range []*record.LatencySummary{&l.TTFT, &l.TTFTEff, &l.TTFOT, &l.TPOT, &l.ICL, &l.ITL, &l.E2E, &l.E2EEff, &l.MaxStall} {
			samples := make([]float64, 1000)
			for j := range samples {
				samples[j] = 0.02 * (1 + 9*random.Float64())
			}
			summary.Count, summary.Histogram = len(samples), stats.NewHistogram(samples)
		}
		report.Cases = append(report.Cases, one)
	}
	return report
}

// TestKeeper keeps reports of any size in a real API server, where a ConfigMap
// has its limit.
func TestKeeper(t *testing.T) {
	client, err := kubernetes.NewForConfig(server.Start(t).Config(apiserver.Admin))
	if err != nil {
		t.Fatal(err)
	}
	pod := cluster.Pod{Namespace: "default", Name: "p", Job: "inference-bench-large", JobUID: "00000000-0000-0000-0000-000000000007"}
	var told []record.Event
	kept := keeper{client: client, pod: pod, name: ReportName("large"), emit: func(e record.Event) { told = append(told, e) }}
	if before, err := kept.load(t.Context()); before != nil || err != nil {
		t.Fatalf("nothing is kept yet: %v, %v", before, err)
	}
	for _, cases := range []int{1, 50, 2, 120} {
		report := largeReport(cases)
		if err := kept.save(t.Context(), report); err != nil {
			t.Fatalf("%d cases: %v", cases, err)
		}
		saved, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), kept.name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d cases: %d bytes of text, %d compressed", cases, len(saved.Data[ReportKey]), len(saved.BinaryData[ReportKey+".gz"]))
		if len(saved.Data)+len(saved.BinaryData) != 1 {
			t.Errorf("%d cases lie in two places", cases)
		}
		got, err := kept.load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(report, *got); diff != "" {
			t.Errorf("%d cases: %s", cases, diff)
		}
	}
	if len(told) != 0 {
		t.Errorf("told %v", told)
	}
	// Past every limit the numbers stay and the histograms go.
	huge := largeReport(600)
	if err := kept.save(t.Context(), huge); err != nil {
		t.Fatal(err)
	}
	got, err := kept.load(t.Context())
	if err != nil || len(got.Cases) != 600 || got.Cases[599].Latency.E2E.Count != 1000 || got.Cases[599].Latency.E2E.Histogram != nil || len(told) != 1 {
		t.Errorf("600 cases: told %v: %v", told, err)
	}
	if huge.Cases[0].Latency.E2E.Histogram == nil {
		t.Error("the report itself lost its histograms")
	}
	// Another Job of the same name starts from nothing.
	other := kept
	other.pod.JobUID = "00000000-0000-0000-0000-000000000008"
	if before, err := other.load(t.Context()); before != nil || err != nil {
		t.Errorf("another Job's report: %v, %v", before, err)
	}
}
