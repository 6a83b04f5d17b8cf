package record

// ChainNew is the state of a chain whose ScaledObject KEDA has not looked at: a
// manifest, or an object that was made just now.
const ChainNew = "new"
