//go:build !linux

package apiserver

import "syscall"

// dieWithParent is Linux's alone; elsewhere a test process that is killed
// leaves its servers behind.
func dieWithParent() *syscall.SysProcAttr { return nil }
