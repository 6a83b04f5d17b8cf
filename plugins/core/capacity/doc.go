// Package capacity turns measured operating points of one replica into a
// capacity envelope: the throughput curve and its fit, the knee by every rule
// in use, what the replica carries under an objective, and the trigger
// thresholds that follow. It is a fold over reports: nothing is measured here.
//
// Two rules hold throughout. A number that advises carries the run, the case,
// the window and the sample counts it rests on. Where those are thin, the
// number is withheld and the reason takes its place.
package capacity
