// Package store writes objects to S3, or to a server that speaks its protocol,
// such that the store itself attests every byte: each object and each part goes
// with its SHA-256, and a commit is a conditional write. Uploads come from
// memory, so a part can be sent again, and nothing touches a disk.
package store
