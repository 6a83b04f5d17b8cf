package hpa

import (
	"strconv"
	"strings"
)

// Version is the Kubernetes minor version of the controller. The zero value
// means unknown and stands for the newest version modelled.
type Version struct {
	Major, Minor int
}

// The versions between which the controller is modelled.
const (
	oldest = 27
	newest = 38
)

// ParseVersion reads versions as servers report them, such as "v1.37.2",
// "1.35+" or "v1.31.4-eks-1". ok is false for anything else.
func ParseVersion(text string) (version Version, ok bool) {
	major, rest, found := strings.Cut(strings.TrimPrefix(text, "v"), ".")
	if !found {
		return Version{}, false
	}
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	var err error
	if version.Major, err = strconv.Atoi(major); err != nil {
		return Version{}, false
	}
	if version.Minor, err = strconv.Atoi(rest[:digits]); err != nil {
		return Version{}, false
	}
	return version, version.Major > 0
}

// Known says whether a version was given.
func (v Version) Known() bool { return v != Version{} }

// Modelled says whether v lies in the range of versions that were read.
func (v Version) Modelled() bool {
	return v.Major == 1 && v.Minor >= oldest && v.Minor <= newest
}

func (v Version) String() string {
	if !v.Known() {
		return "unknown"
	}
	return strconv.Itoa(v.Major) + "." + strconv.Itoa(v.Minor)
}

// since says whether v has what came with 1.minor.
func (v Version) since(minor int) bool {
	return !v.Known() || v.Major > 1 || v.Minor >= minor
}
