package syncmodel

import (
	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/signing"
)

// keySigning is the key of the private key in its Secret.
const keySigning = "signing-key.pem"

// validateSigning reads the key of --sign-key. A Job gets its key from a Secret
// only: what stands in its spec can be read by many.
func (o *options) validateSigning() error {
	o.plan.Sign = o.signSecret != "" || o.signFile != ""
	switch {
	case o.signFile != "" && !o.local:
		return failure.New(failure.Usage, "keep it in a Secret: `kubectl create secret generic signing --from-file="+keySigning+"="+o.signFile+"`, and give --sign-secret signing",
			"read --sign-key: a Job does not take a key from this machine")
	case o.signSecret != "" && o.local:
		return failure.New(failure.Usage, "give --sign-key FILE", "read --sign-secret: --local does not read Secrets of a cluster")
	case o.signFile == "":
		return nil
	}
	key, err := readKey("--sign-key", o.signFile)
	if err != nil {
		return err
	}
	if _, err := signing.ParseSigner(key); err != nil {
		return failure.Wrap(err, "read --sign-key %s", o.signFile)
	}
	o.signKey = string(key)
	return nil
}
