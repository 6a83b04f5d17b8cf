package explain

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/prom"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

func TestWithSizes(t *testing.T) {
	at := func(seconds int) time.Time {
		return time.Date(2026, 11, 30, 12, 0, seconds, 0, time.UTC)
	}
	samples := []prom.Sample{{Time: at(0), Value: 1}, {Time: at(15), Value: 1}, {Time: at(30), Value: 3}, {Time: at(45), Value: 2}, {Time: at(50), Value: math.NaN()}, {Time: at(55), Value: 1e300}}
	told := record.HistoryEntry{Time: at(20), Kind: record.HistoryRescale, By: "HPA", To: new(int32(3)), Count: 1}
	got := withSizes([]record.HistoryEntry{told}, samples)
	want := []record.HistoryEntry{told, {
		Time: at(45), Kind: record.HistorySampled, By: "Prometheus", From: new(int32(3)), To: new(int32(2)), Count: 1,
		Text: "found between the scrapes at 12:00:30Z and 12:00:45Z; no event tells who",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestSampledHistory: sizes come from the trigger's own server; that it has none
// is one line.
func TestSampledHistory(t *testing.T) {
	w := newWorld(t, "sampled", apiserver.Admin)
	namespace := "elsewhere"
	w.prometheus = func(out http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Query().Get("query"), "kube_deployment_spec_replicas{") {
			fmt.Fprint(out, vector("9"))
			return
		}
		now := time.Now().Unix()
		fmt.Fprintf(out, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"namespace":"monitoring","exported_namespace":%q},"values":[[%d,"5"],[%d,"2"]]}]}}`, namespace, now-120, now-105)
	}
	w.addAll(t, []service{steady("fine", 0)})
	sampled := func(document record.ScalingExplanation) (entries []record.HistoryEntry) {
		for _, e := range *document.Chains[0].History {
			if e.Kind == record.HistorySampled {
				entries = append(entries, e)
			}
		}
		return entries
	}
	missing := w.explain(t, "so/fine", "--fresh", "--history")
	if len(sampled(missing)) != 0 || len(missing.Unread) != 1 || !strings.Contains(missing.Unread[0].Message, "has no kube_deployment_spec_replicas of sampled/fine") {
		t.Errorf("got %+v", missing.Unread)
	}
	namespace = w.namespace
	found := w.explain(t, "so/fine", "--fresh", "--history")
	if got := sampled(found); len(got) != 1 || *got[0].From != 5 || *got[0].To != 2 || len(found.Unread) != 0 {
		t.Errorf("got %+v, %+v", got, found.Unread)
	}
	if requests := w.seen(); len(requests) > 12 {
		t.Errorf("%d requests: %v", len(requests), requests)
	}
}
