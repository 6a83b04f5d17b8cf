package stats

import "sort"

// Level is a number that steps up and down in time, such as the requests in
// flight, with its integral. The zero value is 0 since the beginning of time.
type Level struct {
	at, area, level []float64
}

// Change adds by at a time, in seconds. A time before the last one counts as
// that.
func (l *Level) Change(by, at float64) {
	n := len(l.at)
	if n == 0 {
		l.at, l.area, l.level = append(l.at, at), append(l.area, 0), append(l.level, by)
		return
	}
	at = max(at, l.at[n-1])
	l.at = append(l.at, at)
	l.area = append(l.area, l.area[n-1]+l.level[n-1]*(at-l.at[n-1]))
	l.level = append(l.level, l.level[n-1]+by)
}

// Now is the number at present.
func (l *Level) Now() float64 {
	if len(l.level) == 0 {
		return 0
	}
	return l.level[len(l.level)-1]
}

// Area is the integral up to a time.
func (l *Level) Area(at float64) float64 {
	i := sort.SearchFloat64s(l.at, at)
	// i is the first change at or after the time.
	if i == 0 {
		return 0
	}
	return l.area[i-1] + l.level[i-1]*(at-l.at[i-1])
}

// Mean is the mean number in a stretch of time; 0 for an empty one.
func (l *Level) Mean(from, to float64) float64 {
	if to <= from {
		return 0
	}
	return (l.Area(to) - l.Area(from)) / (to - from)
}

// Parts are the means in n equal parts of a stretch of time, and peak is the
// largest number in it.
func (l *Level) Parts(from, to float64, n int) (parts []float64, peak float64) {
	parts = make([]float64, n)
	step := (to - from) / float64(n)
	for i := range parts {
		parts[i] = l.Mean(from+float64(i)*step, from+float64(i+1)*step)
	}
	i := sort.SearchFloat64s(l.at, from)
	if i > 0 {
		peak = l.level[i-1]
	}
	for ; i < len(l.at) && l.at[i] < to; i++ {
		peak = max(peak, l.level[i])
	}
	return parts, peak
}
