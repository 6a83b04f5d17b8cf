package jobrun

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

var cluster apiserver.Shared

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// realJobs is the edge to a real API server, in a namespace of the test's own.
func realJobs(t *testing.T) (Jobs, string) {
	t.Helper()
	client, err := kubernetes.NewForConfig(cluster.Start(t).Config(apiserver.Admin))
	if err != nil {
		t.Fatal(err)
	}
	namespace, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "jobrun-",
		// The strictest standard: what it refuses does not run everywhere.
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return Jobs{Client: client, Poll: time.Millisecond}, namespace.Name
}

// buffers are streams that a test can read.
func buffers(environ ...string) (*term.Streams, *bytes.Buffer) {
	var stderr bytes.Buffer
	return term.New(&bytes.Buffer{}, &bytes.Buffer{}, &stderr, environ), &stderr
}

// checkFailure compares err as a user sees it; "" is none.
func checkFailure(t *testing.T, err error, kind failure.Kind, text string) {
	t.Helper()
	got := ""
	if err != nil {
		got = failure.Text(err)
	}
	if diff := cmp.Diff(text, got); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	if text != "" && failure.KindOf(err) != kind {
		t.Errorf("the failure is of kind %d, want %d", failure.KindOf(err), kind)
	}
}
