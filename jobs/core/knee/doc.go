// Package knee finds the highest rate at which a server keeps its objectives, in
// as little time as the evidence takes. It begins with closed loops of 1, 2, 4
// ... requests in flight, until one more doubling brings little more throughput:
// what is served there brackets the answer. Then it offers Poisson arrivals at
// the rate that is most likely the limit by all trials so far, until the interval
// of that rate is tight enough or the budget is over. It knows nothing of clocks
// and servers: it says what to measure next, and is told what was seen.
package knee
