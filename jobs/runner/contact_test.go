package runner

import (
	"encoding/json"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// closed is an address at which nothing listens.
func closed(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return "http://" + listener.Addr().String()
}

// TestRefusedAtOnce: a mistyped port is said at once, not after eight tries.
func TestRefusedAtOnce(t *testing.T) {
	endpoint := closed(t)
	commit := strings.Repeat("1", 40)
	for name, local := range map[string]func() (json.RawMessage, error){
		"sync, the store": func() (json.RawMessage, error) {
			return LocalSync(t.Context(), os.Getenv, "v1", encode(t, record.SyncPlan{TypeMeta: record.Meta(record.KindSyncPlan), Repo: "a/b", Revision: commit, Destination: "s3://m/p", S3Endpoint: endpoint}), func(record.Event) {})
		},
		"sync, the Hub": func() (json.RawMessage, error) {
			return LocalSync(t.Context(), os.Getenv, "v1", encode(t, record.SyncPlan{TypeMeta: record.Meta(record.KindSyncPlan), Repo: "a/b", Revision: commit, Destination: "s3://m/p", HubEndpoint: endpoint}), func(record.Event) {})
		},
		"verify": func() (json.RawMessage, error) {
			return LocalVerify(t.Context(), os.Getenv, encode(t, record.VerifyPlan{TypeMeta: record.Meta(record.KindVerifyPlan), Location: "s3://m/p", Mode: record.VerifyFast, S3Endpoint: endpoint}), func(record.Event) {})
		},
		"prune": func() (json.RawMessage, error) {
			return LocalPrune(t.Context(), os.Getenv, encode(t, record.PrunePlan{TypeMeta: record.Meta(record.KindPrunePlan), Location: "s3://m/p", S3Endpoint: endpoint}), func(record.Event) {})
		},
	} {
		_, err := local()
		// These words are of the first contact: a store or a Hub that was tried
		// again and again has others.
		if failure.KindOf(err) != failure.Unreachable || failure.HintOf(err) == "" || !strings.HasPrefix(err.Error(), "reach "+endpoint+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestContact(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for endpoint, reached := range map[string]bool{
		"": true, "http://" + listener.Addr().String() + "/path": true, "::": true, "ftp://127.0.0.1": true,
		closed(t): false,
	} {
		if err := contact(t.Context(), "--s3-endpoint", endpoint); (err == nil) != reached {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}

func encode(t *testing.T, plan any) []byte {
	t.Helper()
	data, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
