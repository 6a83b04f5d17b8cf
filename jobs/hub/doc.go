// Package hub reads models from the Hugging Face Hub, or a server that speaks
// its protocol, over plain HTTPS: resolve a revision, list its files with their
// digests, read ranges of them. It keeps nothing on disk and trusts no bytes:
// comparing digests is the caller's work, which sees the whole stream.
package hub
