// Package s3server runs a real S3 server for tests: versitygw over a temporary
// directory, which checks checksums, conditions and part sizes as AWS does.
package s3server
