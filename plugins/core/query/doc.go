// Package query reads as much of a PromQL expression as scaling depends on:
// how many series it can return, over which window it averages, and which
// labels it selects by. It does not check the syntax; what it does not
// understand is unknown, never guessed.
package query
