package runner

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/test/s3server"
)

// TestCredentialsOfOneLine: a Secret made with echo ends in a newline.
func TestCredentialsOfOneLine(t *testing.T) {
	for name, test := range map[string]struct {
		value, want string
		refused     bool
	}{
		"a newline at the end":    {"hf_secret\n", "hf_secret", false},
		"a DOS newline":           {"hf_secret\r\n", "hf_secret", false},
		"white space around":      {" \thf_secret ", "hf_secret", false},
		"nothing else":            {" \n", "", false},
		"a newline inside":        {"hf_sec\nret", "", true},
		"an escape sequence":      {"hf_\x1b[2Jsecret", "", true},
		"as it should be":         {"hf_secret", "hf_secret", false},
		"two lines and a newline": {"hf_sec\nret\n", "", true},
	} {
		for _, variable := range append([]string{"MY_KEY"}, oneLine...) {
			told := ""
			getenv, err := tidy(func(asked string) string { return map[string]string{variable: test.value}[asked] }, func(event record.Event) { told += event.Message }, "", "MY_KEY")
			switch {
			case test.refused:
				if failure.KindOf(err) != failure.Usage || failure.HintOf(err) == "" || !strings.Contains(err.Error(), variable) || strings.Contains(failure.Text(err), "hf_") {
					t.Errorf("%s, %s: %v", name, variable, err)
				}
			case err != nil:
				t.Errorf("%s, %s: %v", name, variable, err)
			case getenv(variable) != test.want || (told != "") != (test.value != test.want) || strings.Contains(told, "hf_"):
				t.Errorf("%s, %s: %q, told %q", name, variable, getenv(variable), told)
			}
		}
	}
}

// TestStoreKeysWithNewlines: every job that reaches a bucket takes them.
func TestStoreKeysWithNewlines(t *testing.T) {
	server := s3server.Start(t)
	server.Bucket(t, "models")
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": s3server.AccessKey + "\n", "AWS_SECRET_ACCESS_KEY": s3server.SecretKey + "\r\n", "AWS_SESSION_TOKEN": "", "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
	plan, err := json.Marshal(record.PrunePlan{TypeMeta: record.Meta(record.KindPrunePlan), Location: "s3://models/base", S3Endpoint: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LocalPrune(t.Context(), os.Getenv, plan, func(record.Event) {}); err != nil {
		t.Error(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", s3server.AccessKey+"\n")
	environ := map[string]string{PlanEnv: string(plan)}
	for _, name := range oneLine {
		environ[name] = os.Getenv(name)
	}
	if _, _, last, code := execute(t, t.Context(), []string{"prune"}, environ); code != 0 {
		t.Errorf("in a Job: %+v", last)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "lab\nsecret")
	if _, err := LocalPrune(t.Context(), os.Getenv, plan, func(record.Event) {}); failure.KindOf(err) != failure.Usage {
		t.Errorf("a key of two lines: %v", err)
	}
}

// TestAPIKeyWithNewline: the key that a bench plan names is one too.
func TestAPIKeyWithNewline(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	plan := `{"target":{"api_key_env":"MY_KEY"}}`
	if names := keysOf([]byte(plan)); len(names) != 1 || names[0] != "MY_KEY" {
		t.Fatalf("%v", names)
	}
	getenv, err := tidy(func(name string) string { return map[string]string{"MY_KEY": "key\n"}[name] }, nil, keysOf([]byte(plan))...)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+getenv("MY_KEY"))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if got != "Bearer key" {
		t.Errorf("the server got %q", got)
	}
}
