package debian

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLibraries(t *testing.T) {
	const depends = `containerd
  Depends: runc
  Depends: libc6
iptables
  PreDepends: init-system-helpers
  Depends: libip4tc2
 |Depends: libxtables12
  Depends: <libxtables12:any>
  Depends: libmnl0
prometheus
  Depends: libjs-jquery
  Depends: libmnl0
libseccomp2
  Depends: libgcc-s1
`
	want := []string{"libip4tc2", "libxtables12", "libmnl0"}
	if diff := cmp.Diff(want, libraries([]byte(depends))); diff != "" {
		t.Errorf("libraries (-want +got):\n%s", diff)
	}
}

func TestEnv(t *testing.T) {
	machine := []string{"HOME=/root", "PATH=/usr/bin", "LD_LIBRARY_PATH=/opt/lib"}
	tests := map[string]struct {
		tools Tools
		want  []string
	}{
		"unpacked": {
			tools: Tools{Path: "/lab/bin:/usr/bin", Libraries: "/lab/lib", Extensions: "/lab/lib/xtables"},
			want:  []string{"PATH=/lab/bin:/usr/bin", "LD_LIBRARY_PATH=/lab/lib", "XTABLES_LIBDIR=/lab/lib/xtables", "HOME=/root"},
		},
		"the machine's": {tools: Tools{Path: "/usr/bin"}, want: []string{"PATH=/usr/bin", "HOME=/root"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.tools.Env(machine)); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}
