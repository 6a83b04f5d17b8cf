// Package prune deletes the revisions of a bucket that nothing needs: not the
// newest, not referred to, not being written. The manifest of a revision goes
// first, so that whatever interrupts the rest, nobody is promised a model that
// is not whole.
package prune
