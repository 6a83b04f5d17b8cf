// Package lab is the lab: a real Kubernetes cluster in which the product is
// tried from end to end, brought up by one command and taken down by another.
//
//	go run ./cmd/lab up          build what is missing, start, wait, print KUBECONFIG
//	go run ./cmd/lab status      the servers, and the URLs on the machine's loopback
//	go run ./cmd/lab exec -- C   run C inside, with kubectl
//	go run ./cmd/lab down        stop; only what was built, and the logs, stay
//	go run ./cmd/lab check-clean prove it
//
// All of it is one module of its own, so that none of its dependencies reach the
// product. Everything is kept under LAB_DIR (default .lab in the repository).
//
// # What is real
//
// etcd, kube-apiserver with aggregation, kube-controller-manager (and with it
// the HPA controller), kube-scheduler, kubelet, kube-proxy and kubectl, built
// from the Kubernetes module as one program; containerd, runc, the CNI plugins,
// iptables and Prometheus from Debian's packages, unpacked into LAB_DIR and not
// installed; CoreDNS; KEDA's operator, metrics adapter and admission webhooks,
// with KEDA's own API objects and RBAC; versitygw as the S3 server. Pods run,
// have addresses and names, and logs, exec and port-forward work.
//
// # What is not
//
//   - The node's GPUs are an extended resource, a number the scheduler counts.
//   - The model server is test/fakes/engine, a queueing model of vLLM with its
//     API and metrics. Its image also bears vLLM's name, so that objects which
//     ask for that run unchanged.
//   - The model hub is test/fakes/hub.
//   - KServe's controllers are stood in for by test/lab/kserve.
//   - KEDA and Prometheus are programs beside the pods. Services lead to them;
//     a pod without a program stands for Prometheus.
//   - Debian's Prometheus cannot discover pods: a loop of ours writes them to a
//     file that it reads (package prometheus).
//   - There is one node, and no way out of the cluster: no default route, and
//     DNS knows the cluster's names only.
//   - etcd does not wait for the disk, and KEDA's webhooks are required
//     (failurePolicy Fail), where KEDA ships Ignore.
//
// # How it is apart from the machine
//
// Up starts the lab's own program in new mount, process, network, IPC and host
// name spaces (package sandbox). Its first process only reaps; when that ends
// the kernel ends all others, and mounts, bridge and packet filter rules go with
// them. So several labs run side by side with the same addresses, a crash leaves
// nothing running, and taking one down takes a second. What servers write to /etc,
// /opt, /usr and /var goes to a layer in memory. The directory is mounted inside
// as /run/lab, which keeps the paths of sockets short. Programs outside reach the
// API server and Prometheus through two ports of the machine's loopback: the
// sockets are opened outside and accepted inside. What a lab puts anywhere else
// are empty control groups, which down removes by name (after a crash: the next
// up or down does).
//
// # Another cluster
//
// With LAB_KUBECONFIG set nothing of this is started, and neither root nor Linux
// is needed: the same workloads (S3, hub, KServe stand-in) are applied to that
// cluster. KEDA and Prometheus must be there (LAB_PROMETHEUS says where), and its
// nodes need the archives of LAB_DIR/images (`kind load image-archive FILE`).
//
// # What others rely on
//
// .lab/kubeconfig and .lab/bin/kubectl; images lab.test/inference-job:dev,
// lab.test/engine:dev (also docker.io/vllm/vllm-openai:v0.25.1), lab.test/hub:dev,
// lab.test/kserve-standin:dev; Services s3.storage.svc:7070 (Secret
// storage/s3-root, bucket models), hub.hub.svc:8080, hub-cdn.hub.svc:8081,
// prometheus.monitoring.svc:9090 and, the same server,
// kube-prometheus-stack-prometheus.monitoring.svc.cluster.local:9090; node
// label gpu=true. Tests call package cluster.
package lab
