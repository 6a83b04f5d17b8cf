package bench

import (
	"maps"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/jobrun"
)

// envCA is the variable in the pod that holds the certificates of --ca-from.
const envCA = "INFERENCE_TARGET_CA"

// keyCA is the key that certificates have in ConfigMaps and Secrets, as
// cert-manager and Kubernetes itself name it.
const keyCA = "ca.crt"

// benchTarget is the server under load, as the flags and the file have it.
func (o *options) benchTarget(url string) (record.BenchTarget, error) {
	target := record.BenchTarget{URL: url, API: o.api, Model: o.model, Insecure: o.insecure, HTTP: o.http}
	if target.HTTP == record.HTTP1 {
		target.HTTP = ""
	}
	if o.apiSecret != "" || (o.local && o.streams.Env(keyAPI) != "") {
		target.APIKeyEnv = keyAPI
	}
	if o.caFrom != "" {
		target.CAEnv = envCA
	}
	if o.caFile != "" {
		pem, err := readAll(o.caFile, nil, 1<<20)
		if err != nil {
			return target, failure.New(failure.Usage, "", "read --ca-file: %w", err)
		}
		target.CA = string(pem)
	}
	if len(o.fileHeaders)+len(o.headers) > 0 {
		target.Headers = map[string]string{}
		maps.Copy(target.Headers, o.fileHeaders)
	}
	for _, text := range o.headers {
		name, value, err := record.ParseHeader(text)
		if err != nil {
			return target, err
		}
		target.Headers[name] = value
	}
	return target, nil
}

// environment sets the variables that the Job's pod gets from the cluster.
func (o *options) environment(spec *jobrun.Spec) {
	if o.apiSecret != "" {
		name, key := nameAndKey(o.apiSecret, keyAPI)
		spec.SecretEnv = append(spec.SecretEnv, jobrun.SecretEnv{Name: keyAPI, Secret: name, Key: key})
	}
	if o.caFrom == "" {
		return
	}
	kind, rest, _ := strings.Cut(o.caFrom, "/")
	name, key := nameAndKey(rest, keyCA)
	if isConfigMap(kind) {
		spec.ConfigEnv = append(spec.ConfigEnv, jobrun.ConfigEnv{Name: envCA, ConfigMap: name, Key: key})
	} else {
		spec.SecretEnv = append(spec.SecretEnv, jobrun.SecretEnv{Name: envCA, Secret: name, Key: key})
	}
}

// nameAndKey reads NAME or NAME/KEY.
func nameAndKey(text, standard string) (name, key string) {
	name, key, found := strings.Cut(text, "/")
	if !found {
		key = standard
	}
	return name, key
}

func isConfigMap(kind string) bool { return kind == "configmap" || kind == "cm" }

func (o *options) validateTarget() error {
	if o.apiSecret != "" {
		if name, key := nameAndKey(o.apiSecret, keyAPI); name == "" || key == "" || strings.Contains(key, "/") {
			return failure.New(failure.Usage, "write NAME, or NAME/KEY where the key is not "+keyAPI, "read --api-key-secret: %q names no Secret", o.apiSecret)
		}
		if o.local {
			return failure.New(failure.Usage, "set the environment variable "+keyAPI+" instead", "read --api-key-secret: --local reads no Secret")
		}
	}
	if o.caFrom != "" {
		kind, rest, _ := strings.Cut(o.caFrom, "/")
		name, key := nameAndKey(rest, keyCA)
		if !isConfigMap(kind) && kind != "secret" || name == "" || key == "" || strings.Contains(key, "/") {
			return failure.New(failure.Usage, "write configmap/NAME or secret/NAME, with /KEY where the key is not "+keyCA, "read --ca-from: %q names no ConfigMap and no Secret", o.caFrom)
		}
		if o.local {
			return failure.New(failure.Usage, "save the certificates to a file and give --ca-file", "read --ca-from: --local reads nothing of the cluster")
		}
	}
	for _, word := range o.target {
		if strings.HasSuffix(word, "/") || strings.HasPrefix(word, "/") || word == "" {
			return failure.New(failure.Usage, "give TYPE/NAME, such as isvc/NAME or svc/NAME", "bench: %q names no target", word)
		}
	}
	return nil
}
