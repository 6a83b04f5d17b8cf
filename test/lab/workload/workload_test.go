package workload

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-inference/kubectl-inference/test/lab/build"
)

func built(names ...string) []build.Built {
	var list []build.Built
	for _, image := range build.Images() {
		for _, name := range names {
			if image.Name == name {
				list = append(list, build.Built{Name: name, Tags: image.Tags, ID: "sha256:" + name})
			}
		}
	}
	return list
}

func TestObjects(t *testing.T) {
	tests := map[string]struct {
		images []build.Built
		want   []string
	}{
		"nothing built": {},
		"the S3 server": {built("versitygw"), []string{"Namespace storage", "Secret s3-root", "Service s3", "Deployment s3"}},
		"both": {built("versitygw", "fakehub"), []string{
			"Namespace storage", "Secret s3-root", "Service s3", "Deployment s3",
			"Namespace hub", "Service hub", "Service hub-cdn", "Deployment hub",
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			list, err := Objects(t.TempDir(), tt.images)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range list {
				got = append(got, o.GetKind()+" "+o.GetName())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

// Each Deployment, the KServe stand-in's too, uses images that the lab builds,
// never pulls one that is there, and is rolled when its image changes.
func TestDeployments(t *testing.T) {
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	source, err := build.Root(wd)
	if err != nil {
		t.Fatal(err)
	}
	list, err := Objects(source, built("versitygw", "fakehub", "kserve-standin"))
	if err != nil {
		t.Fatal(err)
	}
	deployments := 0
	for _, o := range list {
		if o.GetKind() != "Deployment" {
			continue
		}
		deployments++
		noted, _, err := unstructured.NestedString(o.Object, "spec", "template", "metadata", "annotations", imagesAnnotation)
		if err != nil || !strings.HasPrefix(noted, "sha256:") {
			t.Errorf("Deployment %s: images %q, error %v", o.GetName(), noted, err)
		}
		containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range containers {
			if policy := c.(map[string]any)["imagePullPolicy"]; policy != "IfNotPresent" {
				t.Errorf("Deployment %s: imagePullPolicy %v", o.GetName(), policy)
			}
		}
	}
	if deployments != 3 {
		t.Errorf("%d Deployments, want 3", deployments)
	}
}
