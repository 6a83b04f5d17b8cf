// Package stats holds the statistics of a measurement: exact percentiles with
// their intervals, means with theirs, and a histogram that merges. It is pure.
package stats
