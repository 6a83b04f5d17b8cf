//go:build unix

package bench

import "syscall"

// cpuSeconds is the CPU time that the process has used.
func cpuSeconds() *float64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return nil
	}
	return ptr(float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9)
}
