package syncmodel

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
	"github.com/kubectl-inference/kubectl-inference/test/s3server"
)

// use makes an object of each kind that can refer to a bucket, and returns what
// a prune must find.
func use(t *testing.T, client kubernetes.Interface, namespace string) []string {
	t.Helper()
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: namespace} }
	template := func(place string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i", Args: []string{"--model", place}}}},
		}
	}
	selector := map[string]string{"app": "a"}
	pod := template("s3://models/used/rc")
	old := template("s3://models/used/statefulset")
	data, err := json.Marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	_, rs := client.AppsV1().ReplicaSets(namespace).Create(t.Context(), &appsv1.ReplicaSet{ObjectMeta: meta("old"), Spec: appsv1.ReplicaSetSpec{Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: selector}, Template: template("s3://models/used/rs")}}, metav1.CreateOptions{})
	_, rc := client.CoreV1().ReplicationControllers(namespace).Create(t.Context(), &corev1.ReplicationController{ObjectMeta: meta("old"), Spec: corev1.ReplicationControllerSpec{Replicas: new(int32), Selector: selector, Template: &pod}}, metav1.CreateOptions{})
	_, revision := client.AppsV1().ControllerRevisions(namespace).Create(t.Context(), &appsv1.ControllerRevision{ObjectMeta: meta("old"), Revision: 1, Data: runtime.RawExtension{Raw: data}}, metav1.CreateOptions{})
	_, secret := client.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: meta("uri"), StringData: map[string]string{"storageUri": "s3://models/used/secret\n", "token": strings.Repeat("ab", 20)}}, metav1.CreateOptions{})
	_, volume := client.CoreV1().PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: corev1.PersistentVolumeSpec{
		Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "ru.yandex.s3.csi", VolumeHandle: "models/used/volume"}},
	}}, metav1.CreateOptions{})
	_, class := client.StorageV1().StorageClasses().Create(t.Context(), &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Provisioner: "ru.yandex.s3.csi", Parameters: map[string]string{"bucket": "models", "prefix": "used/class"}}, metav1.CreateOptions{})
	if err := errors.Join(rs, rc, revision, secret, volume, class); err != nil {
		t.Fatal(err)
	}
	return []string{
		"used/class StorageClass " + namespace, "used/rc ReplicationController " + namespace + "/old", "used/rs ReplicaSet " + namespace + "/old",
		"used/secret Secret " + namespace + "/uri", "used/statefulset ControllerRevision " + namespace + "/old", "used/volume PersistentVolume " + namespace,
	}
}

// TestPruneFindsUses: the plan has what a real API server knows of.
func TestPruneFindsUses(t *testing.T) {
	client, namespace := prepared(t)
	want := use(t, client, namespace)
	kubeconfig := cluster.Start(t).Kubeconfig(apiserver.Admin)
	if _, _, err := run(t, nil, "prune", "s3://models/used", "--image", "job:test", "--s3-endpoint", "http://s3:9000", "--wait=false", "-n", namespace, "--kubeconfig", kubeconfig); err != nil {
		t.Fatal(err)
	}
	jobs, err := client.BatchV1().Jobs(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(jobs.Items) != 1 {
		t.Fatalf("%d Jobs, error %v", len(jobs.Items), err)
	}
	var plan record.PrunePlan
	for _, variable := range jobs.Items[0].Spec.Template.Spec.Containers[0].Env {
		if variable.Name == "INFERENCE_PLAN" {
			if err := record.Decode([]byte(variable.Value), record.KindPrunePlan, &plan); err != nil {
				t.Fatal(err)
			}
		}
		if strings.Contains(variable.Value, "abababab") {
			t.Error("the value of a Secret stands in the Job")
		}
	}
	got := []string{}
	for _, reference := range plan.References {
		got = append(got, reference.Prefix+" "+reference.Holder)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) || len(plan.Unread) > 0 {
		t.Errorf("found\n%s\nwant\n%s\nunread %v", strings.Join(got, "\n"), strings.Join(want, "\n"), plan.Unread)
	}
}

// TestPruneWithoutRights: whoever may not read all that could refer to the
// bucket deletes nothing, and is told what was not read.
func TestPruneWithoutRights(t *testing.T) {
	server := s3server.Start(t)
	server.Bucket(t, "models")
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": s3server.AccessKey, "AWS_SECRET_ACCESS_KEY": s3server.SecretKey} {
		t.Setenv(name, value)
	}
	_, namespace := prepared(t)
	stdout, _, err := run(t, nil, "prune", "s3://models/base", "--local", "--s3-endpoint", server.URL, "--apply", "-o", "json", "-n", namespace, "--kubeconfig", cluster.Start(t).Kubeconfig(apiserver.Guest))
	if err != nil {
		t.Fatal(err)
	}
	var result record.PruneResult
	if err := record.Decode([]byte(stdout), record.KindPruneResult, &result); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"secrets of all namespaces", "replicasets of all namespaces", "controllerrevisions of all namespaces", "replicationcontrollers of all namespaces", "storageclasses", "persistentvolumes"} {
		if !slices.Contains(result.Unread, kind) {
			t.Errorf("%s is not named: %v", kind, result.Unread)
		}
	}
}
