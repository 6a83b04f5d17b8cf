package prom

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// AWS is what requests to Amazon Managed Prometheus are signed with. Without a
// key it is the reader's own default credentials: KEDA's are those of its pod.
type AWS struct {
	Region                            string
	AccessKeyID, SecretKey, SessionID string
}

// identify takes the identity of a cloud as KEDA does for a trigger without
// authModes.
func (s *Source) identify(trigger keda.Trigger, given keda.Credentials) error {
	parameters, metadata := given.Parameters, trigger.Metadata
	region := cmp.Or(metadata["awsRegion"], parameters["awsRegion"])
	owner := metadata["identityOwner"]
	id := cmp.Or(parameters["awsAccessKeyID"], parameters["awsAccessKeyId"])
	switch provider := given.PodIdentity; {
	case provider == "azure-workload":
		return errors.New("not read here, because KEDA shows an Azure workload identity, which its own pod has")
	case provider == "gcp" || parameters["GoogleApplicationCredentials"] != "":
		return errors.New("not read here, because KEDA shows a Google identity, which its own pod has")
	case provider == "aws", provider == "aws-eks", owner == "operator" && region != "", parameters["awsRoleArn"] != "":
		s.Auth.AWS = &AWS{Region: region}
		s.Note = "signed with your own AWS credentials: KEDA's are those of its pod"
	case id != "" && owner != "operator":
		if parameters["awsSecretAccessKey"] == "" {
			return errors.New("its awsSecretAccessKey could not be read")
		}
		s.Auth.AWS = &AWS{Region: region, AccessKeyID: id, SecretKey: parameters["awsSecretAccessKey"], SessionID: parameters["awsSessionToken"]}
	case metadata["awsAccessKeyID"] != "" || metadata["awsAccessKeyIDFromEnv"] != "":
		return errors.New("not read here, because its AWS keys come from the environment of the workload")
	case region != "":
		s.Note = "KEDA finds no AWS credentials for it, and does not sign the request"
	}
	if s.Auth.AWS != nil {
		if s.Auth.AWS.Region == "" {
			return errors.New("it has no awsRegion to sign for")
		}
		s.Insecure = false
	}
	return nil
}

// emptyBody is the SHA-256 of nothing: a query is a GET.
const emptyBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// signing signs each request for the service aps (SigV4).
type signing struct {
	next   http.RoundTripper
	region string
	keys   aws.CredentialsProvider
	own    bool
	now    func() time.Time
}

// newSigning prepares the signature. The reader's own credentials are looked
// for in environment, profile, container and instance, as every AWS tool does.
func newSigning(ctx context.Context, next http.RoundTripper, a AWS) (http.RoundTripper, error) {
	s := signing{next: next, region: a.Region, now: time.Now}
	if a.AccessKeyID != "" {
		s.keys = credentials.NewStaticCredentialsProvider(a.AccessKeyID, a.SecretKey, a.SessionID)
		return s, nil
	}
	own, err := config.LoadDefaultConfig(ctx, config.WithRegion(a.Region))
	if err != nil {
		return nil, errNoAWS
	}
	s.keys, s.own = own.Credentials, true
	return s, nil
}

var errNoAWS = errors.New("it is signed for AWS, and you have no AWS credentials here: `aws sts get-caller-identity` shows them")

func (s signing) RoundTrip(request *http.Request) (*http.Response, error) {
	keys, err := s.keys.Retrieve(request.Context())
	if err != nil {
		// The cause may hold addresses and paths of the reader's own set-up.
		return nil, errNoAWS
	}
	signed := request.Clone(request.Context())
	if err := v4.NewSigner().SignHTTP(request.Context(), keys, signed, emptyBody, "aps", s.region, s.now()); err != nil {
		return nil, fmt.Errorf("cannot sign the request for AWS region %s", s.region)
	}
	return s.next.RoundTrip(signed)
}
