package record

import "strings"

// CheckpointFolder is the folder below a model's prefix that holds how far each
// unfinished upload has come. It is empty once the manifest is there.
const CheckpointFolder = "_SYNC/"

// ClaimName is the object by which one delivery holds a flat prefix.
const ClaimName = CheckpointFolder + "claim"

// ProbePrefix begins the keys of the objects with which a sync tries the store.
const ProbePrefix = "_PROBE-"

// OwnObject says whether a key below a model's prefix is one of the sync's own
// objects and no file of the model. A model may bring a signature of its own:
// a name that the manifest lists is a file whatever this says.
func OwnObject(name string) bool {
	return name == ManifestName || name == SignatureName || strings.HasPrefix(name, ProbePrefix) || strings.HasPrefix(name, CheckpointFolder)
}
