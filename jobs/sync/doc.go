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
//
// A run that is stopped or killed leaves its uploads open, each with a
// checkpoint below _SYNC/: the hash state behind the last part that the store
// attests. The next run goes on there. Whatever a checkpoint says, a file is
// complete only when the digest of the whole is the Hub's. A large file that is
// complete leaves a receipt there, the checksum that the store must have for it,
// until the manifest says the same: metadata alone is never believed, and an
// object for which nothing else speaks is read in the store. After the manifest,
// nothing of either is left.
//
// A flat prefix is held by a claim, an object with a conditional write, while it
// changes. A store without conditional writes is looked at a moment later, which
// makes a false winner unlikely and not impossible: prefer the immutable layout
// there.
package sync
