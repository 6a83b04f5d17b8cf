package syncmodel

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/hub"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/hub/hubtest"
)

// guideModel is the model of the guide's first command.
const guideModel = "Qwen/Qwen2.5-0.5B-Instruct"

// TestGuide runs the guide's command lines of sync-model in their order, from
// here against a Hub and a store of the test, and as a Job's where they name a
// Secret; a flag that is written in its text has to exist.
func TestGuide(t *testing.T) {
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	guide := string(data)
	_, store := local(t)
	server := hubtest.Start(t, hub.Options{Models: []hub.Model{{Name: guideModel, Bytes: 4 << 20}}})
	commit, _ := server.Commit(guideModel, "main")
	_, namespace := prepared(t)
	kubeconfig := cluster.Start(t).Kubeconfig(apiserver.Admin)
	t.Chdir(t.TempDir())
	writeKeys(t)

	lines := 0
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(guide, -1) {
		for line := range strings.Lines(block[1]) {
			line, _, _ = strings.Cut(line, " #")
			words := strings.Fields(line)
			if len(words) < 3 || strings.Join(words[:3], " ") != "kubectl inference sync-model" {
				continue
			}
			args := words[3:]
			for i := range args {
				args[i] = strings.NewReplacer("OWNER/NAME", guideModel, "SHA", commit, verifySHA, commit).Replace(args[i])
			}
			args = append(args, "--s3-endpoint", store.URL, "-n", namespace, "--kubeconfig", kubeconfig)
			if !slices.Contains([]string{"verify", "prune"}, args[0]) {
				args = append(args, "--hub-endpoint", server.URL)
			}
			// The Job signs with the Secret's key; from here it is the file's.
			if i := slices.Index(args, "--sign-secret"); i >= 0 {
				args[i], args[i+1] = "--sign-key", "signing-key.pem"
			}
			if _, stderr, err := run(t, nil, append(args, "--local")...); err != nil {
				t.Errorf("%s: %s%s", line, stderr, failure.Text(err))
			}
			lines++
		}
	}
	if lines < 7 {
		t.Errorf("ran %d lines", lines)
	}
	for _, flag := range regexp.MustCompile("(?:^|[ `])(--[a-z][a-z0-9-]*)").FindAllStringSubmatch(guide, -1) {
		if !known(strings.TrimPrefix(flag[1], "--")) {
			t.Errorf("the guide names %s, which no command has", flag[1])
		}
	}
}

// known says whether sync-model or a command of it has a flag.
func known(flag string) bool {
	cmd := New(kube.NewFactory("test", rest.NoWarnings{}), term.New(nil, &bytes.Buffer{}, &bytes.Buffer{}, nil), "v1")
	// Of other programs in the guide.
	if flag == "from-file" {
		return true
	}
	return slices.ContainsFunc(append([]*cobra.Command{cmd}, cmd.Commands()...), func(c *cobra.Command) bool { return c.Flags().Lookup(flag) != nil })
}

// writeKeys makes the two files that the guide makes with openssl.
func writeKeys(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"signing-key.pem": {Type: "PRIVATE KEY", Bytes: private}, "signing-key.pub.pem": {Type: "PUBLIC KEY", Bytes: public}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
