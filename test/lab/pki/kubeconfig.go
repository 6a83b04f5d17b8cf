package pki

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig renders a kubeconfig with everything embedded: the server's URL,
// the authority to verify it with, and the user's certificate.
func Kubeconfig(server string, ca []byte, user string, client Pair) ([]byte, error) {
	return render(server, ca, user, &api.AuthInfo{ClientCertificateData: client.Cert, ClientKeyData: client.Key})
}

// TokenKubeconfig is Kubeconfig for a user who proves themselves by a token.
func TokenKubeconfig(server string, ca []byte, user, token string) ([]byte, error) {
	return render(server, ca, user, &api.AuthInfo{Token: token})
}

func render(server string, ca []byte, user string, auth *api.AuthInfo) ([]byte, error) {
	config := api.NewConfig()
	config.Clusters["lab"] = &api.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos[user] = auth
	config.Contexts["lab"] = &api.Context{Cluster: "lab", AuthInfo: user}
	config.CurrentContext = "lab"
	data, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("render kubeconfig of %s: %w", user, err)
	}
	return data, nil
}
