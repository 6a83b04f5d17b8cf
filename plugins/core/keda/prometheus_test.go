package keda

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func vector(result string) []byte {
	return fmt.Appendf(nil, `{"status":"success","data":{"resultType":"vector","result":%s}}`, result)
}

func TestReadPrometheus(t *testing.T) {
	tests := map[string]struct {
		status int
		body   []byte
		strict bool
		want   Reading
	}{
		"a value":                {200, vector(`[{"metric":{"a":"b"},"value":[1,"2.5"]}]`), false, Reading{Value: 2.5}},
		"refused":                {503, vector(`[]`), false, Reading{Failure: QueryRefused}},
		"no JSON":                {200, []byte("<html>"), false, Reading{Failure: QueryUnreadable}},
		"empty is 0":             {200, vector(`[]`), false, Reading{Empty: true}},
		"empty, strictly":        {200, vector(`[]`), true, Reading{Failure: QueryEmpty}},
		"several series":         {200, vector(`[{"value":[1,"1"]},{"value":[1,"2"]}]`), false, Reading{Failure: QuerySeveral}},
		"no value list":          {200, vector(`[{"metric":{}}]`), false, Reading{Empty: true}},
		"a short value list":     {200, vector(`[{"value":[1]}]`), false, Reading{Failure: QueryUnreadable}},
		"NaN is 0":               {200, vector(`[{"value":[1,"NaN"]}]`), false, Reading{Empty: true}},
		"NaN, strictly":          {200, vector(`[{"value":[1,"NaN"]}]`), true, Reading{Failure: QueryNoNumber}},
		"an infinity is 0":       {200, vector(`[{"value":[1,"-Inf"]}]`), false, Reading{Empty: true}},
		"null is -1":             {200, vector(`[{"value":[1,null]}]`), false, Reading{Value: -1}},
		"no number":              {200, vector(`[{"value":[1,"x"]}]`), false, Reading{Failure: QueryNoNumber}},
		"a number without quote": {200, vector(`[{"value":[1,2]}]`), false, Reading{Failure: QueryUnreadable}},
		"the answer of scalar()": {200, vector(`[1,"5"]`), false, Reading{Failure: QueryUnreadable}},
		// Prometheus says status error with 4xx; the status inside is not read.
		"status error inside": {200, []byte(`{"status":"error"}`), false, Reading{Empty: true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, ReadPrometheus(Newest(), test.status, test.body, !test.strict)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestNaN is keda#7475: a rate of 0/0 was a huge negative number before 2.20,
// and is 0 since, which removes replicas too.
func TestNaN(t *testing.T) {
	body := vector(`[{"value":[1,"NaN"]}]`)
	old := ReadPrometheus(Version{2, 19, 0}, 200, body, true)
	if !math.IsNaN(old.Value) || old.Failure != "" || old.Empty {
		t.Errorf("2.19: got %+v", old)
	}
	// The conversion of NaN to a whole number is the machine's own.
	if got, want := MilliAt(Version{2, 19, 0}, old.Value), int64(old.Value*1000); got != want {
		t.Errorf("2.19: got %d, want %d", got, want)
	}
	if got := ReadPrometheus(Version{2, 20, 0}, 200, body, true); !got.Empty || got.Value != 0 {
		t.Errorf("2.20: got %+v", got)
	}
}

func TestMilliAt(t *testing.T) {
	tests := map[float64]map[Version]int64{
		0.0015: {{2, 16, 1}: 1, {2, 19, 0}: 1, {2, 20, 0}: 2, {2, 21, 0}: 2},
		1.005:  {{2, 16, 1}: 1004, {2, 20, 0}: 1005, {}: 1005},
		-1:     {{2, 16, 1}: -1000, {2, 20, 1}: -1000, {2, 20, 2}: 0},
		75:     {{2, 16, 1}: 75000, {2, 21, 0}: 75000},
	}
	for value, versions := range tests {
		for version, want := range versions {
			if got := MilliAt(version, value); got != want {
				t.Errorf("%g in %s: got %d, want %d", value, version, got, want)
			}
		}
	}
	if got := MilliAt(Version{2, 20, 0}, math.Inf(1)); got != 0 {
		t.Errorf("infinite in 2.20.0: got %d", got)
	}
}

func FuzzReadPrometheus(f *testing.F) {
	f.Add(200, vector(`[{"value":[1,"2"]}]`), true)
	f.Add(500, []byte("no"), false)
	f.Fuzz(func(t *testing.T, status int, body []byte, emptyIsZero bool) {
		reading := ReadPrometheus(Newest(), status, body, emptyIsZero)
		if reading.Failure == "" && (math.IsNaN(reading.Value) || math.IsInf(reading.Value, 0)) {
			t.Errorf("got %+v", reading)
		}
	})
}
