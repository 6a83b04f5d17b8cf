package references

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

var sha = strings.Repeat("ab", 20)

func TestFind(t *testing.T) {
	for name, test := range map[string]struct {
		object string
		want   []record.Reference
	}{
		"an argument and a commit": {`{kind: Deployment, metadata: {name: a, namespace: ns}, spec: {template: {spec: {containers: [{args: ["--model=s3://models/base/o/n/` + sha + `/", s3://other/x]}]}}}}`,
			[]record.Reference{{Prefix: "base/o/n/" + sha, Holder: "Deployment ns/a"}, {Revision: sha, Holder: "Deployment ns/a"}}},
		"a commit alone, below a mount": {`{kind: Pod, metadata: {name: a, namespace: ns}, spec: {containers: [{command: [vllm, serve, /mnt/o/n/` + sha + `]}]}, status: {phase: Running}}`,
			[]record.Reference{{Revision: sha, Holder: "Pod ns/a"}}},
		"a variable in quotes":       {`{kind: StatefulSet, metadata: {name: a, namespace: ns}, spec: {containers: [{env: [{name: X, value: '{"model":"s3://models/base/o", "b":1}'}]}]}}`, []record.Reference{{Prefix: "base/o", Holder: "StatefulSet ns/a"}}},
		"the whole bucket":           {`{kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {x: "s3://models"}}`, []record.Reference{{Holder: "ConfigMap ns/a"}}},
		"a bucket that begins so":    {`{kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {x: "s3://models-old/base"}}`, nil},
		"what was applied once":      {`{kind: ConfigMap, metadata: {name: a, namespace: ns, annotations: {kubectl.kubernetes.io/last-applied-configuration: "s3://models/base"}}}`, nil},
		"storageUri":                 {`{kind: InferenceService, metadata: {name: a, namespace: ns}, spec: {predictor: {model: {storageUri: "s3://models/base/o/n"}}}}`, []record.Reference{{Prefix: "base/o/n", Holder: "InferenceService ns/a"}}},
		"storage of a Secret":        {`{kind: InferenceService, metadata: {name: a, namespace: ns}, spec: {predictor: {model: {storage: {key: k, path: base/o/n/}}}}}`, []record.Reference{{Prefix: "base/o/n", Holder: "InferenceService ns/a"}}},
		"storage elsewhere":          {`{kind: InferenceService, metadata: {name: a, namespace: ns}, spec: {predictor: {model: {storage: {path: base/o/n, parameters: {bucket: other}}}}}}`, nil},
		"a mounted prefix":           {`{kind: PersistentVolume, metadata: {name: a}, spec: {mountOptions: [read-only, prefix base/o/n/], csi: {driver: s3.csi.aws.com, volumeAttributes: {bucketName: models}}}}`, []record.Reference{{Prefix: "base/o/n", Holder: "PersistentVolume a"}}},
		"a mounted prefix, =":        {`{kind: PersistentVolume, metadata: {name: a}, spec: {mountOptions: ["--prefix=base/"], csi: {driver: s3.csi.aws.com, volumeAttributes: {bucketName: models}}}}`, []record.Reference{{Prefix: "base", Holder: "PersistentVolume a"}}},
		"a mounted bucket":           {`{kind: PersistentVolume, metadata: {name: a}, spec: {csi: {driver: s3.csi.aws.com, volumeAttributes: {bucketName: models}}}}`, []record.Reference{{Holder: "PersistentVolume a"}}},
		"another mounted bucket":     {`{kind: PersistentVolume, metadata: {name: a}, spec: {csi: {driver: s3.csi.aws.com, volumeAttributes: {bucketName: logs}}}}`, nil},
		"a volume of another driver": {`{kind: PersistentVolume, metadata: {name: a}, spec: {csi: {driver: csi.example.com, volumeAttributes: {bucket_name: models}}}}`, []record.Reference{{Holder: "PersistentVolume a"}}},
		"another volume":             {`{kind: PersistentVolume, metadata: {name: a}, spec: {csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1, volumeAttributes: {name: models}}}}`, nil},
		"a place as handle":          {`{kind: PersistentVolume, metadata: {name: a}, spec: {csi: {driver: ru.yandex.s3.csi, volumeHandle: models/b/lab, volumeAttributes: {mounter: geesefs}}}}`, []record.Reference{{Prefix: "b/lab", Holder: "PersistentVolume a"}}},
		"a bucket as handle":         {`{kind: PersistentVolume, metadata: {name: a}, spec: {csi: {driver: ru.yandex.s3.csi, volumeHandle: models}}}`, []record.Reference{{Holder: "PersistentVolume a"}}},
		"a handle that is a name":    {`{kind: PersistentVolume, metadata: {name: a}, spec: {mountOptions: [prefix base/], csi: {driver: s3.csi.aws.com, volumeHandle: models, volumeAttributes: {bucketName: models}}}}`, []record.Reference{{Prefix: "base", Holder: "PersistentVolume a"}}},
		"attributes of a place":      {`{kind: PersistentVolume, metadata: {name: a}, spec: {csi: {driver: x, volumeAttributes: {bucketName: models, prefix: base/o}}}}`, []record.Reference{{Prefix: "base/o", Holder: "PersistentVolume a"}}},
		"a volume in a pod":          {`{kind: Pod, metadata: {name: a, namespace: ns}, spec: {volumes: [{csi: {driver: x, volumeAttributes: {bucket: models, subPath: base/o}}}]}}`, []record.Reference{{Prefix: "base/o", Holder: "Pod ns/a"}}},
		"a StorageClass":             {`{kind: StorageClass, metadata: {name: a}, parameters: {bucket: models, mounter: geesefs}}`, []record.Reference{{Holder: "StorageClass a"}}},
		"a StorageClass's prefix":    {`{kind: StorageClass, metadata: {name: a}, mountOptions: [prefix base/], parameters: {bucketName: models}}`, []record.Reference{{Prefix: "base", Holder: "StorageClass a"}}},
		"an old ReplicaSet":          {`{kind: ReplicaSet, metadata: {name: a, namespace: ns}, spec: {replicas: 0, template: {metadata: {annotations: {internal.serving.kserve.io/storage-initializer-sourceuri: "s3://models/base/o/n"}}}}}`, []record.Reference{{Prefix: "base/o/n", Holder: "ReplicaSet ns/a"}}},
		"a ReplicationController":    {`{kind: ReplicationController, metadata: {name: a, namespace: ns}, spec: {template: {spec: {containers: [{args: [--model, s3://models/base]}]}}}}`, []record.Reference{{Prefix: "base", Holder: "ReplicationController ns/a"}}},
		"a ControllerRevision":       {`{kind: ControllerRevision, metadata: {name: a, namespace: ns}, data: {spec: {template: {spec: {containers: [{args: [s3://models/base]}]}}}}}`, []record.Reference{{Prefix: "base", Holder: "ControllerRevision ns/a"}}},
		"a Secret's URI":             {`{kind: Secret, metadata: {name: a, namespace: ns}, data: {storageUri: czM6Ly9tb2RlbHMvYmFzZS9vL24K}}`, []record.Reference{{Prefix: "base/o/n", Holder: "Secret ns/a"}}},
		"a Secret's binary value":    {`{kind: Secret, metadata: {name: a, namespace: ns}, data: {x: /////w==, y: not base64}}`, nil},
		"secrets in a Secret":        {`{kind: Secret, metadata: {name: a, namespace: ns}, data: {bucket: bW9kZWxz, key: QUtJQQ==, prefix: YmFzZQ==, token: ` + base64.StdEncoding.EncodeToString([]byte(sha)) + `, hook: ` + base64.StdEncoding.EncodeToString([]byte("https://hooks.example.com/models/T0/secret")) + `}}`, []record.Reference{{Prefix: "base", Holder: "Secret ns/a"}}},
		"a place without a scheme":   {`{kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {x: "models/base/o/n"}}`, []record.Reference{{Prefix: "base/o/n", Holder: "ConfigMap ns/a"}}},
		"a place for rclone":         {`{kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {x: "rclone copy remote:models/base/o /data"}}`, []record.Reference{{Prefix: "base/o", Holder: "ConfigMap ns/a"}}},
		"a path-style URL":           {`{kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {x: "http://s3:9000/models/base/o?x=1"}}`, []record.Reference{{Prefix: "base/o", Holder: "ConfigMap ns/a"}}},
		"a virtual-hosted URL":       {`{kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {x: "https://models.s3.eu-west-1.amazonaws.com/base/o"}}`, []record.Reference{{Prefix: "base/o", Holder: "ConfigMap ns/a"}}},
		"an ARN with a pattern":      {`{kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {x: "arn:aws:s3:::models/base/o/*"}}`, []record.Reference{{Prefix: "base/o", Holder: "ConfigMap ns/a"}}},
		"keys of a ConfigMap":        {`{kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {S3_BUCKET: models, S3_PREFIX: base/o}}`, []record.Reference{{Prefix: "base/o", Holder: "ConfigMap ns/a"}}},
		"variables":                  {`{kind: Pod, metadata: {name: a, namespace: ns}, spec: {containers: [{env: [{name: BUCKET_NAME, value: models}, {name: MODEL_PREFIX, value: /base/o/}]}]}}`, []record.Reference{{Prefix: "base/o", Holder: "Pod ns/a"}}},
		"a mount point of that name": {`{kind: Pod, metadata: {name: a, namespace: ns}, spec: {containers: [{args: [--model=/mnt/models], image: "my-models/x:1"}]}}`, nil},
		"an ended pod":               {`{kind: Pod, metadata: {name: a, namespace: ns}, spec: {containers: [{args: [s3://models/base]}]}, status: {phase: Succeeded}}`, nil},
		"an ended Job":               {`{kind: Job, metadata: {name: a, namespace: ns}, spec: {x: s3://models/base}, status: {conditions: [{type: Complete, status: "True"}]}}`, nil},
		"a running Job":              {`{kind: Job, metadata: {name: a, namespace: ns}, spec: {x: s3://models/base}, status: {conditions: [{type: Complete, status: "False"}]}}`, []record.Reference{{Prefix: "base", Holder: "Job ns/a"}}},
		"a running sync": {`{kind: Job, metadata: {name: a, namespace: ns, labels: {app.kubernetes.io/name: kubectl-inference, app.kubernetes.io/component: sync}}, spec: {template: {spec: {containers: [{env: [{name: INFERENCE_PLAN, value: '{"apiVersion":"kubectl-inference.io/v1alpha1","kind":"SyncPlan","repo":"o/n","revision":"main","destination":"s3://models/base"}'}]}]}}}}`,
			[]record.Reference{{Prefix: "base/o/n", Holder: "the running sync of Job ns/a"}}},
		"a running prune": {`{kind: Job, metadata: {name: a, namespace: ns, labels: {app.kubernetes.io/name: kubectl-inference, app.kubernetes.io/component: prune}}, spec: {env: [{name: INFERENCE_PLAN, value: '{"kind":"PrunePlan","location":"s3://models/base"}'}]}}`, nil},
		"nonsense":        {`{kind: 7, metadata: [], spec: {csi: 1, storage: {path: 3}}, status: {conditions: x}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(test.object), &object); err != nil {
				t.Fatal(err)
			}
			got := Find(object, "models")
			slices.SortFunc(got, func(a, b record.Reference) int { return cmp.Compare(a.Revision, b.Revision) })
			if diff := gocmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
