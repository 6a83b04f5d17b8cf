package object

import (
	"crypto/md5"
	"encoding/hex"
)

// maxName is the longest name of an object that must also be a DNS label.
const maxName = 63

// ChildName returns parent+suffix where that fits into 63 characters. Where it
// does not, the end of the parent's name gives way to the MD5 of the whole of
// it, so that names stay different: the rule of Knative's kmeta.ChildName,
// which KServe uses. The suffix must be shorter than 31 characters.
func ChildName(parent, suffix string) string {
	if len(parent)+len(suffix) <= maxName {
		return parent + suffix
	}
	sum := md5.Sum([]byte(parent))
	digest := hex.EncodeToString(sum[:])
	return parent[:maxName-len(digest)-len(suffix)] + digest + suffix
}
