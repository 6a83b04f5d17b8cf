package keda

import "testing"

func TestParseVersion(t *testing.T) {
	tests := map[string]struct {
		want Version
		ok   bool
	}{
		"2.21.0": {Version{2, 21, 0}, true}, "v2.16.1": {Version{2, 16, 1}, true}, "2.20": {Version{2, 20, 0}, true},
		"2.21.0-rc1": {Version{2, 21, 0}, true}, "2.21.0+build": {Version{2, 21, 0}, true},
		"main": {}, "": {}, "2": {}, "2.x.1": {}, "2.-1.0": {}, "1.2.3.4": {}, "0.0.0": {},
	}
	for text, test := range tests {
		got, ok := ParseVersion(text)
		if ok != test.ok || ok && got != test.want {
			t.Errorf("%q: got %v %v, want %v %v", text, got, ok, test.want, test.ok)
		}
	}
}

func TestParseImage(t *testing.T) {
	tests := map[string]string{
		"ghcr.io/kedacore/keda:2.21.0":             "2.21.0",
		"kedacore/keda:2.16.1@sha256:00":           "2.16.1",
		"registry.example:5000/kedacore/keda:2.18": "2.18.0",
		"registry.example:5000/kedacore/keda":      "unknown",
		"keda@sha256:00":                           "unknown",
		"keda:main":                                "unknown",
	}
	for image, want := range tests {
		got, ok := ParseImage(image)
		if !ok {
			got = Version{}
		}
		if got.String() != want {
			t.Errorf("%s: got %s, want %s", image, got, want)
		}
	}
}

func TestModelled(t *testing.T) {
	tests := map[Version]bool{{2, 14, 9}: false, {2, 15, 0}: true, {2, 21, 3}: true, {2, 22, 0}: false, {3, 0, 0}: false, {}: false}
	for version, want := range tests {
		if got := version.Modelled(); got != want {
			t.Errorf("%v: got %v", version, got)
		}
	}
	if !(Version{}).since(21, 0) || !(Version{3, 0, 0}).since(21, 0) || (Version{2, 20, 1}).since(20, 2) || !(Version{2, 20, 2}).since(20, 2) {
		t.Error("an unknown version is the newest, and patches count")
	}
}
