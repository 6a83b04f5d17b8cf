package workload_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/workload"
)

// The expectations are worked out by hand from the two files.
func TestParseTrace(t *testing.T) {
	tests := map[string]workload.Trace{
		"testdata/mooncake.jsonl": {
			AtSeconds: []float64{0, 1, 2.5}, PromptTokens: []int{1100, 512, 700}, OutputTokens: []int{52, 1, 10},
			HashIDs: [][]uint64{{7, 8, 9}, {7}, {7, 11}},
		},
		"testdata/azure.csv": {
			AtSeconds: []float64{0, 4.314579, 4.541877}, PromptTokens: []int{374, 396, 879}, OutputTokens: []int{44, 109, 55},
		},
	}
	for file, want := range tests {
		t.Run(file, func(t *testing.T) {
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			got, skipped, err := workload.ParseTrace(f)
			if err != nil || skipped != 1 {
				t.Fatal(skipped, err)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseTraceOf2024(t *testing.T) {
	got, _, err := workload.ParseTrace(strings.NewReader("TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10 00:00:01.017335+00:00,2399,6\n"))
	if err != nil || len(got.AtSeconds) != 2 || got.AtSeconds[1] < 1.0074 || got.AtSeconds[1] > 1.0075 {
		t.Errorf("%+v %v", got, err)
	}
}

func TestParseTraceRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":          "",
		"no request":       "TIMESTAMP,ContextTokens,GeneratedTokens\n",
		"failed ones only": `{"timestamp":1,"input_length":0,"output_length":0}`,
		"a missing field":  `{"timestamp":1,"input_length":5}`,
		"no JSON":          "{oops\n",
		"another CSV":      "a,b,c\n1,2,3\n",
		"no time":          "TIMESTAMP,ContextTokens,GeneratedTokens\nnow,1,1\n",
		"no number":        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,x,1\n",
		"huge":             `{"timestamp":1,"input_length":99999999999,"output_length":1}`,
	} {
		if got, _, err := workload.ParseTrace(strings.NewReader(text)); err == nil || name != "huge" && failure.KindOf(err) != failure.Usage {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestTraceScaleAndHead(t *testing.T) {
	trace := workload.Trace{AtSeconds: []float64{0, 1, 5}, PromptTokens: []int{1, 2, 3}, OutputTokens: []int{4, 5, 6}}
	got := trace.Scale(2).Head(2.5)
	want := workload.Trace{AtSeconds: []float64{0, 0.5}, PromptTokens: []int{1, 2}, OutputTokens: []int{4, 5}}
	if diff := cmp.Diff(want, got); diff != "" || trace.AtSeconds[2] != 5 {
		t.Error(diff)
	}
}

func FuzzParseTrace(f *testing.F) {
	f.Add("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n")
	f.Add(`{"timestamp": 3000, "input_length": 1100, "output_length": 52, "hash_ids": [7, 8, 9]}`)
	f.Fuzz(func(t *testing.T, text string) {
		trace, _, err := workload.ParseTrace(strings.NewReader(text))
		if err == nil && trace.Validate() != nil {
			t.Errorf("%q gives a trace that is not valid", text)
		}
	})
}
