package record

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

func TestSyncPlanValidate(t *testing.T) {
	valid := SyncPlan{TypeMeta: Meta(KindSyncPlan), Repo: "lab/tiny", Revision: "main", Destination: "s3://models/llm"}
	tests := map[string]struct {
		change func(*SyncPlan)
		want   string
	}{
		"valid":             {change: func(*SyncPlan) {}},
		"bucket only":       {change: func(p *SyncPlan) { p.Destination = "s3://models" }},
		"preset":            {change: func(p *SyncPlan) { p.Preset = PresetVLLM }},
		"no owner":          {change: func(p *SyncPlan) { p.Repo = "tiny" }, want: "not OWNER/NAME"},
		"escape":            {change: func(p *SyncPlan) { p.Repo = "lab/a..b" }, want: "not OWNER/NAME"},
		"query":             {change: func(p *SyncPlan) { p.Repo = "lab/a?x" }, want: "not OWNER/NAME"},
		"not s3":            {change: func(p *SyncPlan) { p.Destination = "gs://models" }, want: "not an S3 location"},
		"no bucket":         {change: func(p *SyncPlan) { p.Destination = "s3:///x" }, want: "not an S3 location"},
		"dots":              {change: func(p *SyncPlan) { p.Destination = "s3://m/../x" }, want: "not an S3 location"},
		"double slash":      {change: func(p *SyncPlan) { p.Destination = "s3://m/a//b" }, want: "not an S3 location"},
		"endpoint":          {change: func(p *SyncPlan) { p.HubEndpoint = "hub" }, want: "not an http or https URL"},
		"unknown preset":    {change: func(p *SyncPlan) { p.Preset = "tgi" }, want: `preset "tgi" is not known`},
		"negative workers":  {change: func(p *SyncPlan) { p.Workers = -1 }, want: "read plan: workers is -1"},
		"absurd workers":    {change: func(p *SyncPlan) { p.Workers = 1000 }, want: "read plan: workers is 1000"},
		"negative parallel": {change: func(p *SyncPlan) { p.Parallel = -1 }, want: "read plan: parallel is -1"},
		"absurd parallel":   {change: func(p *SyncPlan) { p.Parallel = 1 << 20 }, want: "read plan: parallel is 1048576"},
		"absurd memory":     {change: func(p *SyncPlan) { p.MemoryBytes = 1 << 50 }, want: "read plan: memory is"},
		"negative memory":   {change: func(p *SyncPlan) { p.MemoryBytes = -1 }, want: "read plan: memory is -1"},
		"s3 endpoint":       {change: func(p *SyncPlan) { p.S3Endpoint = "ftp://x" }, want: "not an http or https URL"},
		"s3 endpoint valid": {change: func(p *SyncPlan) { p.S3Endpoint = "http://s3.store.svc:7070" }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			plan := valid
			test.change(&plan)
			err := plan.Validate()
			if test.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || failure.KindOf(err) != failure.Usage {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestSyncPlanPrefix(t *testing.T) {
	commit := strings.Repeat("0a", 20)
	tests := map[string]struct {
		plan SyncPlan
		want string
	}{
		"addressed":   {plan: SyncPlan{Repo: "o/n", Destination: "s3://b/models/"}, want: "models/o/n/" + commit},
		"bucket root": {plan: SyncPlan{Repo: "o/n", Destination: "s3://b"}, want: "o/n/" + commit},
		"flat":        {plan: SyncPlan{Repo: "o/n", Destination: "s3://b/models/x", Flat: true}, want: "models/x"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := test.plan.Prefix(commit)
			if err != nil || got != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestSyncPlanRoundTrip(t *testing.T) {
	plan := SyncPlan{TypeMeta: Meta(KindSyncPlan), Repo: "o/n", Revision: "main", Destination: "s3://b", Include: []string{"*.json"}, Parallel: 3, Workers: 2, MemoryBytes: 1 << 20}
	data, err := Encode(plan)
	if err != nil {
		t.Fatal(err)
	}
	var again SyncPlan
	if err := Decode(data, KindSyncPlan, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plan, again); diff != "" {
		t.Errorf("round trip (-want +got):\n%s", diff)
	}
}

func TestIsCommit(t *testing.T) {
	for revision, want := range map[string]bool{
		strings.Repeat("a", 40): true, strings.Repeat("A", 40): false, strings.Repeat("a", 39): false, "main": false, "": false, strings.Repeat("a", 40) + "\n": false,
	} {
		if got := IsCommit(revision); got != want {
			t.Errorf("%q: got %v", revision, got)
		}
	}
}
