package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/lab/build"
	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
	"github.com/kubectl-inference/kubectl-inference/test/lab/process"
	"github.com/kubectl-inference/kubectl-inference/test/lab/sandbox"
	"github.com/kubectl-inference/kubectl-inference/test/lab/workload"
)

// settings is what the outside tells the inside.
type settings struct {
	// HPASync is a duration as Go writes it.
	HPASync string `json:"hpaSync"`
	GPUs    int    `json:"gpus"`
	Timeout string `json:"timeout"`
	// Server and Prometheus are the URLs under which programs outside reach
	// the API server and Prometheus.
	Server     string `json:"server"`
	Prometheus string `json:"prometheus"`
}

// Up brings the lab up and returns when all of it works. With a lab that is up
// already it brings images and workloads up to date. When it fails, or ctx
// ends, nothing that it started is left.
func Up(ctx context.Context, o Options) (*Lab, error) {
	o = o.withDefaults()
	if o.Kubeconfig != "" {
		return upElsewhere(ctx, o)
	}
	if err := sandbox.Supported(); err != nil {
		return nil, err
	}
	if err := o.Layout.Make(); err != nil {
		return nil, err
	}
	unlock, err := lock(ctx, o.Layout)
	if err != nil {
		return nil, err
	}
	defer unlock()

	id, running, err := sandbox.Find(o.Layout)
	if err != nil {
		return nil, err
	}
	images, err := Build(ctx, o)
	if err != nil {
		return nil, err
	}
	lab := &Lab{Kubeconfig: o.Layout.Kubeconfig(), Prometheus: "http://prometheus.monitoring.svc:9090", Started: !running}
	if running {
		o.Report.Note("the lab is up already")
		err = o.Report.Step(ctx, "new images", func(context.Context) error { return loadInside(o.Layout, id) })
	} else {
		err = start(ctx, o)
	}
	if err != nil {
		return nil, err
	}
	if err := workloads(ctx, o, lab.Kubeconfig, images); err != nil {
		if !running {
			err = errors.Join(err, abandon(ctx, o.Layout))
		}
		return nil, err
	}
	s, err := readSettings(o.Layout)
	if err != nil {
		return nil, err
	}
	lab.PrometheusHost = s.Prometheus
	return lab, nil
}

// Build makes the programs and images without starting anything.
func Build(ctx context.Context, o Options) ([]build.Built, error) {
	if err := o.Layout.Make(); err != nil {
		return nil, err
	}
	if o.Kubeconfig == "" {
		if err := build.Cluster(ctx, o.Source, o.Layout, o.Report); err != nil {
			return nil, err
		}
	}
	return build.Pods(ctx, o.Source, o.Layout, o.Report)
}

// BuildPrograms builds single programs by their names.
func BuildPrograms(ctx context.Context, o Options, names []string) error {
	if err := o.Layout.Make(); err != nil {
		return err
	}
	return build.Programs(ctx, o.Source, o.Layout, names, o.Report)
}

// start starts the sandbox and waits until its servers are ready.
func start(ctx context.Context, o Options) (err error) {
	// What a lab left that was killed.
	if err := clean(ctx, o.Layout); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()

	// Sockets keep the network namespace that they were made in: these listen
	// on the machine's loopback, but are accepted from inside.
	var sockets []*os.File
	var urls []string
	for range 2 {
		socket, address, err := listen(ctx)
		if err != nil {
			return err
		}
		defer socket.Close()
		sockets, urls = append(sockets, socket), append(urls, address)
	}
	if err := writeSettings(o, urls[0], urls[1]); err != nil {
		return err
	}
	// The inside tells its progress through a pipe. Its end is also how each
	// side notices that the other has gone.
	progress, tell, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start lab: %w", err)
	}
	defer progress.Close()
	inside := layout.Layout(layout.Inside)
	_, err = sandbox.Spawn(o.Layout, o.Layout.Bin("lab"), sandbox.Command{
		Path: inside.Bin("lab"), Args: []string{"supervise"},
		Files: append(sockets, tell),
	})
	_ = tell.Close() // the lab's now
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = progress.Close() })
	defer stop()
	if err := follow(o, progress); err != nil {
		if ctx.Err() != nil {
			err = failure.New(failure.KindOf(ctx.Err()), "the logs are in "+o.Layout.Logs(), "start lab: %w", ctx.Err())
		}
		return errors.Join(err, abandon(ctx, o.Layout))
	}
	return nil
}

// follow reads the progress of the start until it is over.
func follow(o Options, progress io.Reader) error {
	for decoder := json.NewDecoder(progress); ; {
		var e event
		if err := decoder.Decode(&e); err != nil {
			err = &process.Silent{Err: fmt.Errorf("it ended: %w", err), Tail: process.Tail(o.Layout.Log("lab"), 15)}
			return failure.New(failure.Failed, "the logs are in "+o.Layout.Logs(), "start lab: %w", err)
		}
		switch {
		case e.Error != "":
			return e.failed()
		case e.Ready:
			return nil
		default:
			o.Report.Note("%-28s %6.1fs", e.Step, e.Seconds)
		}
	}
}

// listen opens a port of the machine's loopback and returns its URL's host.
func listen(ctx context.Context) (*os.File, string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("open port: %w", err)
	}
	defer listener.Close()
	tcp, ok := listener.(*net.TCPListener)
	if !ok {
		return nil, "", errors.New("open port: not a TCP port")
	}
	file, err := tcp.File()
	if err != nil {
		return nil, "", fmt.Errorf("open port: %w", err)
	}
	return file, listener.Addr().String(), nil
}

func writeSettings(o Options, server, prom string) error {
	data, err := json.MarshalIndent(settings{
		HPASync: o.HPASync.String(), GPUs: o.GPUs, Timeout: o.Timeout.String(),
		Server: "https://" + server, Prometheus: "http://" + prom,
	}, "", "  ")
	if err == nil {
		err = os.MkdirAll(o.Layout.Run(), 0o755)
	}
	if err == nil {
		err = os.WriteFile(o.Layout.Run("settings.json"), data, 0o644)
	}
	if err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	return nil
}

func readSettings(l layout.Layout) (settings, error) {
	var s settings
	data, err := os.ReadFile(l.Run("settings.json"))
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		return settings{}, fmt.Errorf("read settings: %w", err)
	}
	return s, nil
}

// workloads puts into the cluster what runs in pods.
func workloads(ctx context.Context, o Options, kubeconfig string, images []build.Built) error {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	config, err := restConfig(kubeconfig)
	if err != nil {
		return err
	}
	list, err := workload.Objects(o.Source, images)
	if err != nil {
		return err
	}
	err = o.Report.Step(ctx, "workloads", func(ctx context.Context) error { return workload.Apply(ctx, config, list) })
	if err != nil {
		return err
	}
	return o.Report.Step(ctx, "bucket "+workload.Bucket, func(ctx context.Context) error { return workload.CreateBucket(ctx, config) })
}
