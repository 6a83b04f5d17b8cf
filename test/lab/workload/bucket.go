package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	"github.com/kubectl-inference/kubectl-inference/test/lab/process"
)

// Bucket is the bucket that models are synced to.
const Bucket = "models"

const (
	explainTimeout = 5 * time.Second
	s3Namespace    = "storage"
	s3Port         = "7070"
)

// CreateBucket creates the bucket, through a port-forward to the S3 server's
// pod, which works the same in every cluster.
func CreateBucket(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create bucket %s: %w", Bucket, err)
	}
	secret, err := client.CoreV1().Secrets(s3Namespace).Get(ctx, "s3-root", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("create bucket %s: %w", Bucket, err)
	}
	err = process.Poll(ctx, func(ctx context.Context) error {
		pod, err := readyPod(ctx, client)
		if err != nil {
			return err
		}
		return forwarded(ctx, config, client, pod, func(url string) error { return createBucket(ctx, url, secret.Data) })
	})
	if err != nil {
		return fmt.Errorf("create bucket %s: %w", Bucket, err)
	}
	return nil
}

func createBucket(ctx context.Context, url string, secret map[string][]byte) error {
	client := s3.New(s3.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(url), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(string(secret["AWS_ACCESS_KEY_ID"]), string(secret["AWS_SECRET_ACCESS_KEY"]), ""),
	})
	_, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(Bucket)})
	if owned := (*types.BucketAlreadyOwnedByYou)(nil); errors.As(err, &owned) {
		return nil
	}
	if exists := (*types.BucketAlreadyExists)(nil); errors.As(err, &exists) {
		return nil
	}
	return err
}

func readyPod(ctx context.Context, client kubernetes.Interface) (string, error) {
	pods, err := client.CoreV1().Pods(s3Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=s3"})
	if err != nil {
		return "", err
	}
	for _, pod := range pods.Items {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil {
				return pod.Name, nil
			}
		}
	}
	return "", errors.New("no pod of the S3 server is ready")
}

// forwarded calls use with a URL that leads to the pod.
func forwarded(ctx context.Context, config *rest.Config, client kubernetes.Interface, pod string, use func(url string) error) error {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return fmt.Errorf("forward port of %s: %w", pod, err)
	}
	target := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(s3Namespace).Name(pod).SubResource("portforward").URL()
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, target)
	stop, ready := make(chan struct{}), make(chan struct{})
	var stderr bytes.Buffer
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{"0:" + s3Port}, stop, ready, io.Discard, &stderr)
	if err != nil {
		return fmt.Errorf("forward port of %s: %w", pod, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case err := <-ended:
		return fmt.Errorf("forward port of %s: %w", pod, err)
	case <-ctx.Done():
		close(stop)
		<-ended
		return ctx.Err()
	case <-ready:
	}
	ports, err := forwarder.GetPorts()
	if err == nil {
		err = use(fmt.Sprintf("http://127.0.0.1:%d", ports[0].Local))
	}
	close(stop)
	<-ended
	if err != nil && stderr.Len() > 0 {
		err = fmt.Errorf("%w (%s)", err, strings.TrimSpace(stderr.String()))
	}
	return err
}
