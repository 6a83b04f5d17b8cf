package jobrun

import (
	"github.com/spf13/cobra"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// The keys that a Secret with S3 credentials has, which are also the
// environment variables that AWS's and vLLM's clients read.
const (
	KeyAccess = "AWS_ACCESS_KEY_ID"
	KeySecret = "AWS_SECRET_ACCESS_KEY"
)

// StoreFlags say how the bucket is reached.
type StoreFlags struct {
	Endpoint string
	Region   string
	Secret   string
}

// AddFlags adds the flags to cmd.
func (f *StoreFlags) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.Endpoint, "s3-endpoint", "", "URL of an S3 server that is not AWS, as the cluster reaches it")
	flags.StringVar(&f.Region, "s3-region", "", "region of the bucket (default from the environment)")
	flags.StringVar(&f.Secret, "s3-secret", "", "Secret with the keys "+KeyAccess+" and "+KeySecret+" (default: the ServiceAccount's own identity, IRSA or Pod Identity)")
}

// Validate refuses an endpoint that is not a URL.
func (f *StoreFlags) Validate() error {
	if f.Endpoint == "" {
		return nil
	}
	if err := record.CheckURL(f.Endpoint); err != nil {
		return failure.New(failure.Usage, "write it as https://host:port", "read --s3-endpoint: %w", err)
	}
	return nil
}

// SecretEnv returns the environment variables with the credentials.
func (f *StoreFlags) SecretEnv() []SecretEnv {
	if f.Secret == "" {
		return nil
	}
	return []SecretEnv{{Name: KeyAccess, Secret: f.Secret, Key: KeyAccess}, {Name: KeySecret, Secret: f.Secret, Key: KeySecret}}
}
