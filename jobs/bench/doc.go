// Package bench measures what a server does under load. For each case of a plan
// it keeps the asked number of requests in flight (closed loop), finds the
// steady window, and reports what happened in it: what the client saw, what the
// server's own series say of the same window, and whether the client itself was
// fit to measure. Ramp and drain are outside the window.
package bench
