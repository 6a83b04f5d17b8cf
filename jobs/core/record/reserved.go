package record

// CheckpointFolder is the folder below a model's prefix that holds how far each
// unfinished upload has come. It is empty once the manifest is there.
const CheckpointFolder = "_SYNC/"
