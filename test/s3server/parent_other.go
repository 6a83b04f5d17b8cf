//go:build !linux

package s3server

import "syscall"

// dieWithParent has no counterpart here; the test's clean-up ends the server.
func dieWithParent() *syscall.SysProcAttr { return nil }
