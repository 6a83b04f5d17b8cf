package prom

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Series is one series with its samples, the oldest first.
type Series struct {
	Labels  map[string]string
	Samples []Sample
}

// Sample is what one scrape found.
type Sample struct {
	Time  time.Time
	Value float64
}

// mostSeries bounds an answer: objects of one name have some dozens at most.
const mostSeries = "200"

// Samples returns what was scraped of a selector within the span before a
// moment. The times are those of the scrapes: query_range would repeat the last
// value at each of its own steps.
func (r Reader) Samples(ctx context.Context, source Source, selector string, span time.Duration, at time.Time) ([]Series, error) {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	source.Query = fmt.Sprintf("%s[%ds]", selector, int(span.Seconds()))
	values := source.question(at)
	values.Set("limit", mostSeries)
	answer, err := r.Ask(ctx, source, "/api/v1/query", values)
	if err != nil {
		return nil, err
	}
	if answer.Status != http.StatusOK {
		return nil, fmt.Errorf("%s answers with status %d", source.Address.Host, answer.Status)
	}
	var body struct {
		Status string
		Data   struct {
			ResultType string
			Result     []struct {
				Metric map[string]string
				Values [][2]json.RawMessage
			}
		}
	}
	unreadable := fmt.Errorf("%s does not answer as Prometheus does", source.Address.Host)
	if json.Unmarshal(answer.Body, &body) != nil || body.Status != "success" || body.Data.ResultType != "matrix" {
		return nil, unreadable
	}
	series := []Series{}
	for _, result := range body.Data.Result {
		one := Series{Labels: result.Metric}
		for _, pair := range result.Values {
			var seconds float64
			var text string
			if json.Unmarshal(pair[0], &seconds) != nil || json.Unmarshal(pair[1], &text) != nil {
				return nil, unreadable
			}
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, unreadable
			}
			one.Samples = append(one.Samples, Sample{time.UnixMilli(int64(math.Round(seconds * 1000))).UTC(), value})
		}
		series = append(series, one)
	}
	return series, nil
}
