package store_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

// TestExplain: what a store refuses is said with its cause, the action and the
// resource, and none of it is worth another try.
func TestExplain(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		region string
		code   string
		kind   failure.Kind
		text   string
		hint   string
	}{
		"another region":          {301, "eu-west-1", "PermanentRedirect", failure.Usage, "the bucket is in region eu-west-1", "give --s3-region eu-west-1"},
		"signed for another":      {400, "", "AuthorizationHeaderMalformed", failure.Usage, "the bucket is in another region", "give --s3-region"},
		"a name that none has":    {400, "", "InvalidBucketName", failure.Usage, "no (InvalidBucketName)", "3 to 63 small letters"},
		"clock skew":              {403, "", "RequestTimeTooSkewed", failure.Usage, "the clocks of this machine and the store differ too much", "set the clock of the machine"},
		"no permission to list":   {403, "", "AccessDenied", failure.Denied, "access denied, it needs s3:ListBucket", "allow s3:ListBucket for these credentials on arn:aws:s3:::models"},
		"keys that are not known": {403, "", "InvalidAccessKeyId", failure.Denied, "does not accept the credentials", "--s3-secret"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				if test.region != "" {
					w.Header().Set("x-amz-bucket-region", test.region)
				}
				w.WriteHeader(test.status)
				if request.Method != http.MethodHead {
					_, _ = w.Write([]byte("<Error><Code>" + test.code + "</Code><Message>no</Message></Error>"))
				}
			}))
			defer server.Close()
			_, err := store.Open(t.Context(), store.Config{Bucket: "models", Endpoint: server.URL, Region: "us-east-1", Attempts: 1,
				Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
			err = store.Explain(err)
			if failure.KindOf(err) != test.kind || !strings.Contains(err.Error(), test.text) || !strings.Contains(failure.HintOf(err), test.hint) {
				t.Errorf("kind %d: %s", failure.KindOf(err), failure.Text(err))
			}
		})
	}
}
