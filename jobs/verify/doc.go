// Package verify compares a prefix with its manifest: whether it holds exactly
// the listed objects, with the listed content. Fast asks the store for sizes,
// checksums and metadata; full reads and hashes every byte, in bounded memory.
// A signature beside the manifest is checked with the user's own public key.
//
// What fast can prove is what the store attests: a checksum that it computed
// when the object was written, and that the manifest recorded. Damage on the
// store's own disks shows in a full verification only.
package verify
