package cluster

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// A ConfigMap holds 1 MiB, and managedFields count too. A document of more than
// plainSize is kept compressed; one of more than maxSize even then cannot be.
const (
	plainSize = 512 << 10
	maxSize   = 1000 << 10
	// maxDocument bounds what is unpacked.
	maxDocument = 64 << 20
)

// packed is the suffix of the key under which a document is compressed.
const packed = ".gz"

// pack decides how a document lies in a ConfigMap. ok is false for one that is
// too large.
func pack(key string, document []byte) (text map[string]string, binary map[string][]byte, ok bool) {
	if len(document) <= plainSize {
		return map[string]string{key: string(document)}, nil, true
	}
	var buffer bytes.Buffer
	writer, _ := gzip.NewWriterLevel(&buffer, gzip.BestCompression) // the level exists
	_, _ = writer.Write(document)                                   // a buffer takes everything
	_ = writer.Close()
	return nil, map[string][]byte{key + packed: buffer.Bytes()}, buffer.Len() <= maxSize
}

// Document returns the document that Save kept under key; ok is false where
// there is none.
func Document(configMap *corev1.ConfigMap, key string) (document []byte, ok bool, err error) {
	if text, ok := configMap.Data[key]; ok {
		return []byte(text), true, nil
	}
	compressed, ok := configMap.BinaryData[key+packed]
	if !ok {
		return nil, false, nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(compressed))
	if err == nil {
		document, err = io.ReadAll(io.LimitReader(reader, maxDocument))
	}
	if err != nil {
		return nil, false, fmt.Errorf("read %s of configmap %s/%s: %w", key+packed, configMap.Namespace, configMap.Name, err)
	}
	return document, true, nil
}

// Load returns what an earlier pod of the same Job saved; nil where there is
// nothing, or only what another Job of that name left.
func Load(ctx context.Context, client kubernetes.Interface, pod Pod, name, key string) ([]byte, error) {
	var found *corev1.ConfigMap
	err := insist(ctx, func() (err error) {
		found, err = client.CoreV1().ConfigMaps(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		return nil, denied(pod, "get", name, err)
	case err != nil:
		return nil, fmt.Errorf("get configmap %s/%s: %w", pod.Namespace, name, err)
	}
	for _, owner := range found.OwnerReferences {
		if string(owner.UID) == pod.JobUID {
			document, _, err := Document(found, key)
			return document, err
		}
	}
	return nil, nil
}

func denied(pod Pod, act, name string, err error) error {
	return failure.New(failure.Denied, "give the Job's ServiceAccount what it needs: `kubectl inference manifests rbac | kubectl apply -n "+pod.Namespace+" -f -`",
		"%s configmap %s/%s: %w", act, pod.Namespace, name, err)
}
