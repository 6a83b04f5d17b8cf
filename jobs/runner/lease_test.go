package runner

import "testing"

// A sync of one pod and the first worker of another one's meet at one Lease.
func TestLeaseName(t *testing.T) {
	alone := leaseName("models", "prod", "")
	if first := leaseName("models", "prod", "0"); first != alone {
		t.Errorf("the first worker holds %s, a single pod %s", first, alone)
	}
	if second := leaseName("models", "prod", "1"); second == alone {
		t.Error("the second worker would wait for the first")
	}
	if leaseName("models", "prod2", "") == alone {
		t.Error("two prefixes share a Lease")
	}
}
