package prom

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

func TestSamples(t *testing.T) {
	tests := map[string]struct {
		status int
		body   string
		want   []Series
		err    string
	}{
		"two scrapes": {200, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"a":"b"},"values":[[1796040000.123,"1"],[1796040015.123,"2"]]}]}}`,
			[]Series{{map[string]string{"a": "b"}, []Sample{{time.UnixMilli(1796040000123).UTC(), 1}, {time.UnixMilli(1796040015123).UTC(), 2}}}}, ""},
		"none":      {200, `{"status":"success","data":{"resultType":"matrix","result":[]}}`, []Series{}, ""},
		"refused":   {422, `{"status":"error"}`, nil, "answers with status 422"},
		"a vector":  {200, `{"status":"success","data":{"resultType":"vector","result":[]}}`, nil, "does not answer as Prometheus does"},
		"no number": {200, `{"status":"success","data":{"resultType":"matrix","result":[{"values":[[1,"x"]]}]}}`, nil, "does not answer as Prometheus does"},
		"cut off":   {200, `{"status":"success","data":{"resul`, nil, "does not answer as Prometheus does"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if got := r.URL.Query(); got.Get("query") != `up{a="b"}[3600s]` || got.Get("limit") != mostSeries {
					t.Errorf("asked %v", got)
				}
				w.WriteHeader(test.status)
				fmt.Fprint(w, test.body)
			}))
			defer server.Close()
			source, err := FromTrigger(trigger(server.URL, nil), keda.Credentials{}, keda.Version{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := Reader{Timeout: time.Minute}.Samples(t.Context(), source, `up{a="b"}`, time.Hour, moment)
			if (err == nil) != (test.err == "") || (err != nil && !strings.Contains(err.Error(), test.err)) {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
