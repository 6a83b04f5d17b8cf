package keda

import (
	"fmt"
	"strconv"
	"strings"
)

// Version is a version of KEDA; the zero value is unknown.
type Version struct{ Major, Minor, Patch int }

// The versions that the model was made from.
var (
	oldest = Version{2, 15, 0}
	newest = Version{2, 21, 0}
)

// Newest is the newest version that is modelled: what an unknown one is taken
// for.
func Newest() Version { return newest }

// Known says whether the version is known.
func (v Version) Known() bool { return v != Version{} }

// Modelled says whether the model was made from this minor version.
func (v Version) Modelled() bool {
	return v.Major == 2 && v.Minor >= oldest.Minor && v.Minor <= newest.Minor
}

func (v Version) String() string {
	if !v.Known() {
		return "unknown"
	}
	return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
}

// since says whether the version is 2.minor.patch or later; an unknown version
// is the newest.
func (v Version) since(minor, patch int) bool {
	if !v.Known() || v.Major > 2 {
		return true
	}
	return v.Major == 2 && (v.Minor > minor || v.Minor == minor && v.Patch >= patch)
}

// ParseVersion reads the version of an HPA's label app.kubernetes.io/version,
// such as 2.21.0, v2.21 or 2.21.0-rc1. A build from KEDA's main branch calls
// itself "main": that is no version.
func ParseVersion(text string) (Version, bool) {
	text, _, _ = strings.Cut(strings.TrimPrefix(text, "v"), "-")
	text, _, _ = strings.Cut(text, "+")
	parts := strings.Split(text, ".")
	if len(parts) < 2 || len(parts) > 3 {
		return Version{}, false
	}
	var numbers [3]int
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return Version{}, false
		}
		numbers[i] = n
	}
	v := Version{numbers[0], numbers[1], numbers[2]}
	return v, v.Known()
}

// ParseImage reads the version of an image's tag, such as
// ghcr.io/kedacore/keda:2.21.0 or with a digest after it.
func ParseImage(image string) (Version, bool) {
	image, _, _ = strings.Cut(image, "@")
	name := image[strings.LastIndex(image, "/")+1:]
	_, tag, _ := strings.Cut(name, ":")
	return ParseVersion(tag)
}
