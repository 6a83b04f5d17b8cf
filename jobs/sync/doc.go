// Package sync copies one commit of a Hub model into a bucket, in four steps:
//
//	plan      resolve the commit, list and choose its files, look what is there
//	transfer  stream ranges from the Hub to the store, hashing in order
//	gate      compare digests, headers and indexes with what the Hub states
//	commit    write _MANIFEST.json, last and once
//
// A file becomes an object only after its bytes proved to be the Hub's, and the
// manifest is written only after every object was confirmed, so a prefix with a
// manifest holds exactly the revision. All transfers share one memory budget;
// nothing is written to a disk.
package sync
