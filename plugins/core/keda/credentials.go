package keda

// Credentials are what a trigger's authenticationRef resolves to. They are
// secrets: no error, document or recording holds any of it.
type Credentials struct {
	// Parameters are by KEDA's names, such as bearerToken.
	Parameters map[string]string
	// PodIdentity is the provider (aws, aws-eks, azure-workload, gcp) whose
	// identity KEDA takes; "" or "none" without one.
	PodIdentity string
}

// HasPodIdentity says whether KEDA takes the identity of a pod.
func (c Credentials) HasPodIdentity() bool { return c.PodIdentity != "" && c.PodIdentity != "none" }

// SendsOAuth says whether a prometheus trigger's authMode oauth has an effect:
// before 2.21 KEDA accepts it, and asks without a token.
func (v Version) SendsOAuth() bool { return v.since(21, 0) }
