// Package controller carries out what the packages isvc and llmisvc build: it
// watches services and their children through one API server and writes the
// children, their status and events, as KServe's controllers do.
package controller

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
)

const (
	// manager is the field manager that KServe's writes show.
	manager = "manager"

	// Retries start at once, as after a lost conflict, and slow down.
	firstRetry = 5 * time.Millisecond
	lastRetry  = 5 * time.Second

	// appearPoll is how often a resource that is not served yet is looked for.
	appearPoll = 500 * time.Millisecond
)

// Options configure a [Controller].
type Options struct {
	// Namespace is where KServe's presets are.
	Namespace string
	Log       *slog.Logger
	// Now is the clock of status conditions.
	Now func() time.Time
}

// Controller reconciles InferenceServices and LLMInferenceServices.
type Controller struct {
	Options

	client    dynamic.Interface
	discovery *discovery.DiscoveryClient
	events    typedcorev1.CoreV1Interface
	recorder  record.EventRecorder
	informers dynamicinformer.DynamicSharedInformerFactory
	queues    map[string]queue

	mu     sync.Mutex
	synced map[schema.GroupVersionResource]bool
}

// queue holds the services of one kind that are to be reconciled, as
// namespace/name.
type queue = workqueue.TypedRateLimitingInterface[string]

// New returns a controller that talks to the API server of config.
func New(config *rest.Config, options Options) (*Controller, error) {
	config = rest.CopyConfig(config)
	// KServe is not slowed down by a client-side rate limit worth naming.
	config.QPS, config.Burst = 200, 400
	// KServe's finalizer has a name that the API server warns of every time.
	config.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	discovered, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	events, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	return &Controller{
		Options:   options,
		client:    client,
		discovery: discovered,
		events:    events,
		informers: dynamicinformer.NewDynamicSharedInformerFactory(client, 0),
		queues:    map[string]queue{},
		synced:    map[schema.GroupVersionResource]bool{},
	}, nil
}

// Run reconciles until the context ends. It waits for resources that the API
// server does not serve yet, KEDA's for as long as it takes: until then only
// what needs them fails.
func (c *Controller) Run(ctx context.Context) error {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.events.Events("")})
	c.recorder = broadcaster.NewRecorder(runtime.NewScheme(), corev1.EventSource{Component: "kserve-standin"})

	work := map[string]func(context.Context, string, string) error{
		kindISVC:    c.reconcileISVC,
		kindLLMISVC: c.reconcileLLM,
	}
	var running sync.WaitGroup
	defer running.Wait()
	for kind := range work {
		c.queues[kind] = workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry))
		defer c.queues[kind].ShutDown()
	}
	for _, resource := range watched() {
		running.Go(func() { c.watch(ctx, resource) })
	}
	for _, resource := range watched() {
		if resource == scaledObjects {
			continue
		}
		if err := c.waitSynced(ctx, resource); err != nil {
			return nil
		}
	}
	c.Log.Info("watching")
	for kind, reconcile := range work {
		running.Go(func() { c.process(ctx, kind, reconcile) })
	}
	<-ctx.Done()
	return nil
}

// watch starts the informer of a resource once the API server serves it.
func (c *Controller) watch(ctx context.Context, resource schema.GroupVersionResource) {
	poll := time.NewTicker(appearPoll)
	defer poll.Stop()
	for !c.served(resource) {
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
		}
	}
	informer := c.informers.ForResource(resource).Informer()
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(seen any) { c.enqueue(resource, seen) },
		UpdateFunc: func(_, seen any) { c.enqueue(resource, seen) },
		DeleteFunc: func(seen any) { c.enqueue(resource, seen) },
	})
	if err != nil {
		c.Log.Error("cannot watch", "resource", resource.Resource, "error", err)
		return
	}
	c.informers.Start(ctx.Done())
	if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		c.mu.Lock()
		c.synced[resource] = true
		c.mu.Unlock()
	}
}

// served says whether the API server has the resource now.
func (c *Controller) served(resource schema.GroupVersionResource) bool {
	list, err := c.discovery.ServerResourcesForGroupVersion(resource.GroupVersion().String())
	if err != nil {
		return false
	}
	for _, found := range list.APIResources {
		if found.Name == resource.Resource {
			return true
		}
	}
	return false
}

func (c *Controller) cached(resource schema.GroupVersionResource) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.synced[resource]
}

func (c *Controller) waitSynced(ctx context.Context, resource schema.GroupVersionResource) error {
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for !c.cached(resource) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-poll.C:
		}
	}
	return nil
}

// enqueue queues the service that seen is, or belongs to, or inherits from.
func (c *Controller) enqueue(resource schema.GroupVersionResource, seen any) {
	if tombstone, ok := seen.(cache.DeletedFinalStateUnknown); ok {
		seen = tombstone.Obj
	}
	found, err := meta.Accessor(seen)
	if err != nil {
		return
	}
	switch resource {
	case inferenceServices:
		c.queues[kindISVC].Add(found.GetNamespace() + "/" + found.GetName())
	case llmServices:
		c.queues[kindLLMISVC].Add(found.GetNamespace() + "/" + found.GetName())
	case llmConfigs:
		for _, key := range c.informers.ForResource(llmServices).Informer().GetStore().ListKeys() {
			c.queues[kindLLMISVC].Add(key)
		}
	default:
		if owner := metav1.GetControllerOf(found); owner != nil && c.queues[owner.Kind] != nil {
			c.queues[owner.Kind].Add(found.GetNamespace() + "/" + owner.Name)
		}
	}
}

// process reconciles what is queued of one kind, one at a time.
func (c *Controller) process(ctx context.Context, kind string, reconcile func(context.Context, string, string) error) {
	waiting := c.queues[kind]
	stop := context.AfterFunc(ctx, waiting.ShutDown)
	defer stop()
	for {
		key, shutdown := waiting.Get()
		if shutdown {
			return
		}
		namespace, name, _ := cache.SplitMetaNamespaceKey(key)
		if err := reconcile(ctx, namespace, name); err != nil {
			c.Log.Info("will retry", "kind", kind, "key", key, "error", err)
			waiting.AddRateLimited(key)
		} else {
			waiting.Forget(key)
		}
		waiting.Done(key)
	}
}
