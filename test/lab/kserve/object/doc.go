// Package object holds what both kinds of service share: names of children,
// owner references, copied metadata and status conditions. It is pure.
package object
