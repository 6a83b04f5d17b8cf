package jobrun

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// CAEnv holds certificates in PEM that are trusted beside the public ones. A
// variable, because a Job of the plugin has no volumes.
const CAEnv = "INFERENCE_CA_PEM"

// maxCA bounds the certificates: Linux passes no variable of 128 KiB.
const maxCA = 100 << 10

// defaultCAKey is where most tools put a certificate authority.
const defaultCAKey = "ca.crt"

// The variables that Go programs read a proxy from.
const (
	keyProxy   = "HTTPS_PROXY"
	keyPlain   = "HTTP_PROXY"
	keyNoProxy = "NO_PROXY"
)

// direct is reached without a proxy whatever the user says: the addresses that
// hand out credentials of Pod Identity and of the node (s5cmd#807), and the
// cluster's own Services.
const direct = "169.254.170.23,fd00:ec2::23,169.254.169.254,localhost,127.0.0.1,.svc,.cluster.local"

// NetworkFlags say how a Job gets out of the cluster. The proxy variables of the
// user's own machine are not passed on: its proxy is rarely the cluster's, and
// often holds a password.
type NetworkFlags struct {
	Proxy       string
	NoProxy     string
	ProxySecret string
	CAConfigMap string
	CAFile      string

	pem string
}

// AddFlags adds the flags to cmd.
func (f *NetworkFlags) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.Proxy, "proxy", "", "URL of the proxy between the Job and the world; one with a password goes into --proxy-secret")
	flags.StringVar(&f.NoProxy, "no-proxy", "", "hosts that the Job reaches without the proxy, as in NO_PROXY; Services and the addresses that hand out credentials are added")
	flags.StringVar(&f.ProxySecret, "proxy-secret", "", "Secret with the proxy's URL under the key "+keyProxy)
	flags.StringVar(&f.CAConfigMap, "ca-configmap", "", "ConfigMap with certificates that the Job trusts beside the public ones, as NAME or NAME/KEY (default key "+defaultCAKey+")")
	flags.StringVar(&f.CAFile, "ca-bundle", "", "the same from a PEM file of this machine; with --local too")
}

// Validate refuses what cannot work, and reads the file of --ca-bundle.
func (f *NetworkFlags) Validate() error {
	switch {
	case f.Proxy != "" && f.ProxySecret != "":
		return failure.New(failure.Usage, "leave out one of the two", "read --proxy and --proxy-secret: both name a proxy")
	case f.CAFile != "" && f.CAConfigMap != "":
		return failure.New(failure.Usage, "leave out one of the two", "read --ca-bundle and --ca-configmap: both name certificates")
	case f.NoProxy != "" && f.Proxy == "" && f.ProxySecret == "":
		return failure.New(failure.Usage, "give --proxy or --proxy-secret", "read --no-proxy: there is no proxy")
	}
	if f.Proxy != "" {
		if parsed, err := url.Parse(f.Proxy); err == nil && parsed.User != nil {
			return failure.New(failure.Usage, "put the URL into a Secret under the key "+keyProxy+" and give --proxy-secret NAME",
				"read --proxy: it holds credentials, which would stand in the Job for everybody to read")
		}
		if err := record.CheckURL(f.Proxy); err != nil {
			return failure.New(failure.Usage, "write it as http://host:port", "read --proxy: %w", err)
		}
	}
	if f.CAFile == "" {
		return nil
	}
	data, err := os.ReadFile(f.CAFile)
	if err != nil {
		return failure.New(failure.NotFound, "", "read --ca-bundle: %w", err)
	}
	if err := checkPEM(data); err != nil {
		return failure.New(failure.Usage, "give your own authority's certificates alone; the public ones are built in", "read --ca-bundle %s: %w", f.CAFile, err)
	}
	f.pem = string(data)
	return nil
}

func checkPEM(data []byte) error {
	if len(data) > maxCA {
		return fmt.Errorf("%d bytes are too many, at most %d fit", len(data), maxCA)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(data) {
		return errors.New("no certificate in PEM is in it")
	}
	return nil
}

// PEM returns the certificates of --ca-bundle, "" for none.
func (f *NetworkFlags) PEM() string { return f.pem }

// JobOnly returns the name of a flag that was given and means something to a
// Job alone, or "".
func (f *NetworkFlags) JobOnly() string {
	for flag, value := range map[string]string{"--proxy": f.Proxy, "--proxy-secret": f.ProxySecret, "--ca-configmap": f.CAConfigMap} {
		if value != "" {
			return flag
		}
	}
	return ""
}

// Apply copies the flags into spec.
func (f *NetworkFlags) Apply(spec *Spec) {
	if f.pem != "" {
		spec.set(CAEnv, f.pem)
	}
	if f.CAConfigMap != "" {
		name, key, found := strings.Cut(f.CAConfigMap, "/")
		if !found {
			key = defaultCAKey
		}
		spec.ConfigEnv = append(spec.ConfigEnv, ConfigEnv{Name: CAEnv, ConfigMap: name, Key: key})
	}
	if f.Proxy == "" && f.ProxySecret == "" {
		return
	}
	without := direct
	if f.NoProxy != "" {
		without = f.NoProxy + "," + direct
	}
	spec.set(keyNoProxy, without)
	if f.Proxy != "" {
		spec.set(keyProxy, f.Proxy)
		spec.set(keyPlain, f.Proxy)
		return
	}
	for _, name := range []string{keyProxy, keyPlain} {
		spec.SecretEnv = append(spec.SecretEnv, SecretEnv{Name: name, Secret: f.ProxySecret, Key: keyProxy})
	}
}
