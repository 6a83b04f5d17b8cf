package s3server

import "syscall"

// dieWithParent has the kernel end the server when the test ends in any way.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
