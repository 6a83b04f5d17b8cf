package capacity

import (
	"os"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

func seedReport(t *testing.T) record.BenchReport {
	t.Helper()
	data, err := os.ReadFile("../../../manifests/examples/seed-benchreport.json")
	if err != nil {
		t.Fatal(err)
	}
	var report record.BenchReport
	if err := record.Decode(data, record.KindBenchReport, &report); err != nil {
		t.Fatal(err)
	}
	return report
}

func TestX(t *testing.T) {
	o := DefaultOptions()
	o.Checks = []Check{{"waiting", 2}, {"kv_cache_usage", .75}, {"p99_e2e", 30}}
	e, err := Envelope([]Source{{"x", seedReport(t)}}, o)
	if err != nil {
		t.Fatal(err)
	}
	e.Shapes[0].Fit.Curve = nil
	data, _ := record.Encode(e)
	t.Log(string(data))
}
