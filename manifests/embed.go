// Package manifests holds the YAML that the plugin applies or prints: the Job
// that its work runs in, the least RBAC for each command, that for holding scaling, templates of
// predictors, and examples.
package manifests

import "embed"

// Files is the whole folder.
//
//go:embed jobs rbac hold templates examples
var Files embed.FS
