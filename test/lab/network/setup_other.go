//go:build !linux

package network

import "errors"

// Setup is not supported outside Linux.
func Setup() error { return errors.New("make network: it needs Linux") }
