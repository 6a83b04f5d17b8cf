// Package sandbox keeps the lab apart from the machine it runs on: its own
// mount, process, network, IPC and host name spaces, ended as one.
//
// The first process of the new process namespace (Init) only reaps; when it
// ends, for whatever reason, the kernel ends every other one, and with the last
// of them go the mounts, the bridge and the packet filter's rules.
package sandbox
