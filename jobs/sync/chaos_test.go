package sync_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/sync"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/hub"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/s3proxy"
	"github.com/kubectl-inference/kubectl-inference/test/s3server"
)

// The variables of the chaos test: how many runs are killed, the seed, and, in a
// child, the plan that it is to carry out.
const (
	chaosRuns = "CHAOS_RUNS"
	chaosSeed = "CHAOS_SEED"
	chaosPlan = "CHAOS_PLAN"
)

// TestMain makes the test binary its own victim: with a plan in its environment
// it is a sync, to be killed.
func TestMain(m *testing.M) {
	if data := os.Getenv(chaosPlan); data != "" {
		os.Exit(victim(data))
	}
	os.Exit(m.Run())
}

func victim(data string) int {
	var plan record.SyncPlan
	if err := json.Unmarshal([]byte(data), &plan); err != nil {
		return 2
	}
	_, err := sync.Run(context.Background(), plan, sync.Deps{
		Credentials:     credentials.NewStaticCredentialsProvider(s3server.AccessKey, s3server.SecretKey, ""),
		CheckpointEvery: 200 * time.Millisecond,
		// As the pods of one Job, which take a dead one's claim over at once.
		Run: "Job chaos", Beat: 700 * time.Millisecond,
		Emit: func(event record.Event) { fmt.Println(event.Name, event.Message) },
		// Nobody wants to see a test sleep; the order of events is what counts.
		Wait: func(_ context.Context, d time.Duration) error { time.Sleep(min(d, 50*time.Millisecond)); return nil },
	})
	if err != nil {
		fmt.Print(failure.Text(err))
	}
	return failure.ExitCode(err)
}

// chaos is a world in which runs are killed.
type chaos struct {
	*world
	random *rand.Rand
	proxy  *s3proxy.Proxy
	// served is how many bytes of each file had been read once it was complete.
	served map[string]int64

	killed, ended, complete int
	round                   int
}

// TestChaos kills syncs at random moments under random faults, and lets the last
// one end. After each kill: a manifest, where there is one, names right objects
// alone, and no file is read again that was complete. After each success: no
// upload is open and no checkpoint is left. `make chaos-sync` runs 200.
func TestChaos(t *testing.T) {
	number := func(name string, otherwise uint64) uint64 {
		if value, err := strconv.ParseUint(os.Getenv(name), 10, 63); err == nil {
			return value
		}
		return otherwise
	}
	runs, seed := int(number(chaosRuns, 8)), number(chaosSeed, 4)
	c := &chaos{random: rand.New(rand.NewPCG(seed, 2))}
	c.world = newWorld(t, func(o *hub.Options) { o.Models[0].Bytes, o.Models[0].Shards, o.Now = 100*mebibyte, 3, nil })
	target, err := url.Parse(c.store.URL)
	if err != nil {
		t.Fatal(err)
	}
	c.proxy = s3proxy.New(target, seed)
	server := httptest.NewUnstartedServer(c.proxy)
	// A broken connection is what is wanted, not news.
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	defer server.Close()
	c.plan.S3Endpoint = server.URL
	c.next()
	for c.killed < runs && !t.Failed() {
		c.hurt()
		c.attempt(time.Duration(c.random.Int64N(int64(2500 * time.Millisecond))))
	}
	c.hub.Clear()
	c.proxy.SetRates(s3proxy.Rates{})
	c.attempt(time.Hour)
	if c.complete == 0 {
		t.Error("the last run, without faults, did not complete")
	}
	t.Logf("seed %d: %d runs killed, %d ended, %d of them complete; %d faults of the store; %d models", seed, c.killed, c.ended, c.complete, c.proxy.Faults(), c.round)
}

// next begins with an empty prefix, flat every other time.
func (c *chaos) next() {
	c.round++
	c.plan.Flat = c.round%2 == 0
	c.plan.Destination = fmt.Sprintf("s3://%s/round-%d", bucket, c.round)
	c.hub.ResetStats()
	c.served = make(map[string]int64)
}

// hurt draws the faults of one run.
func (c *chaos) hurt() {
	c.hub.Clear()
	for _, fault := range []hub.Fault{
		{Kind: hub.FaultCut, Times: 1 + c.random.IntN(4), After: c.random.Int64N(20 * mebibyte)},
		{Kind: hub.FaultCorrupt, Path: "model", Times: 1, After: c.random.Int64N(30 * mebibyte)},
		{Kind: hub.FaultStatus, Status: 429, On: hub.OnResolve, Times: 1 + c.random.IntN(3), RetryAfter: 1},
		{Kind: hub.FaultStatus, Status: 503, Times: 1 + c.random.IntN(3)},
		{Kind: hub.FaultExpired, Times: 1 + c.random.IntN(3)},
		{Kind: hub.FaultFull, Path: "model", Times: 1},
	} {
		if c.random.IntN(2) == 0 {
			c.hub.Inject(fault)
		}
	}
	c.proxy.SetRates(s3proxy.Rates{Refuse: 0.1 * c.random.Float64(), Drop: 0.05 * c.random.Float64(), Lose: 0.1 * c.random.Float64()})
}

// attempt runs one sync, kills it after the given time, and looks.
func (c *chaos) attempt(after time.Duration) {
	c.t.Helper()
	data, err := json.Marshal(c.plan)
	if err != nil {
		c.t.Fatal(err)
	}
	var output bytes.Buffer
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), chaosPlan+"="+string(data), "AWS_EC2_METADATA_DISABLED=true")
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		c.t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { _ = command.Process.Kill() })
	err = command.Wait()
	killed := !timer.Stop() && command.ProcessState.ExitCode() == -1
	c.settle()
	c.look()
	switch {
	case killed:
		c.killed++
	case err == nil:
		c.ended++
		c.complete++
		c.whole()
		c.next()
	default:
		c.ended++
		if code := command.ProcessState.ExitCode(); code != 1 && code != 6 {
			c.t.Errorf("a fault that passes ended a run with exit code %d", code)
		}
	}
	if c.t.Failed() {
		c.t.Logf("run %d (killed: %v) of round %d:\n%s", c.killed+c.ended, killed, c.round, output.String())
	}
}

// settle waits until nothing that the dead run asked for is still under way.
func (c *chaos) settle() {
	before := int64(-1)
	for {
		now := c.hub.Stats().FileBytes
		if now == before {
			return
		}
		before = now
		time.Sleep(30 * time.Millisecond)
	}
}

// look checks what must hold at any moment.
func (c *chaos) look() {
	c.t.Helper()
	served := c.hub.Stats().BytesByPath
	for path, bytes := range c.served {
		if served[path] > bytes {
			c.t.Errorf("%s was read again after it was complete: %d bytes more", path, served[path]-bytes)
		}
	}
	keys := make(map[string]bool)
	for _, key := range c.store.Keys(c.t, bucket) {
		keys[key] = true
	}
	promised := make(map[string]string)
	if keys[c.prefix()+"/"+record.ManifestName] {
		for _, file := range c.manifest().Files {
			promised[file.Path] = file.SHA256
		}
	}
	for _, entry := range c.hub.Entries(repo, "main") {
		key := c.prefix() + "/" + entry.Path
		if !keys[key] {
			if promised[entry.Path] != "" {
				c.t.Errorf("the manifest names %s, which is not there", entry.Path)
			}
			continue
		}
		// An object is the file, or it would not be one.
		if got := digestOf(c.read(key)); got != entry.SHA256 || promised[entry.Path] != "" && promised[entry.Path] != got {
			c.t.Errorf("%s: object %s, Hub %s, manifest %q", entry.Path, got, entry.SHA256, promised[entry.Path])
		}
		if _, known := c.served[entry.Path]; !known {
			c.served[entry.Path] = served[entry.Path]
		}
	}
}

// whole checks what must hold after a success.
func (c *chaos) whole() {
	c.t.Helper()
	if got, want := len(c.manifest().Files), len(c.hub.Entries(repo, "main")); got != want {
		c.t.Errorf("the manifest names %d of %d files", got, want)
	}
	prefix := c.prefix() + "/"
	out, err := c.store.Client().ListMultipartUploads(c.t.Context(), &s3.ListMultipartUploadsInput{Bucket: new(bucket), Prefix: &prefix})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, upload := range out.Uploads {
		c.t.Errorf("an upload of %s was left open", *upload.Key)
	}
	for _, key := range c.store.Keys(c.t, bucket) {
		if strings.HasPrefix(key, prefix+record.CheckpointFolder) || strings.HasPrefix(key, prefix+record.ProbePrefix) {
			c.t.Errorf("%s was left", key)
		}
	}
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
