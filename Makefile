# kubectl-inference. The targets a newcomer needs: demo, test, lab-up, lab-down.
#   make demo       the whole loop on a real cluster of its own (Linux, root)
#   make test       everything that needs Go alone
#   make lab-test   the stories on the real cluster (Linux, root; or LAB_KUBECONFIG)

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build

# One setting for every build: each combination has its own packages in Go's
# cache, and the lab's servers take minutes to compile.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
LAB := go -C test/lab run ./cmd/lab
LAB_DIR ?= $(CURDIR)/.lab
# Staticcheck is pinned: a new version may find new things on any day.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: build
build: ## build the plugin and the job binary into bin/
	go build -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

.PHONY: install
install: build ## put the plugin on your PATH (PREFIX=/usr/local)
	install -m 0755 bin/kubectl-inference $(or $(PREFIX),/usr/local)/bin/

.PHONY: servers
servers: ## build the API server and the S3 server that the tests use
	$(LAB) build kubernetes versitygw

# The servers are built for Linux; elsewhere the tests that need them say so.
ifeq ($(shell uname -s),Linux)
test: servers
test: export LAB_KUBERNETES := $(LAB_DIR)/bin/kubernetes
test: export LAB_VERSITYGW := $(LAB_DIR)/bin/versitygw
endif

.PHONY: test
test: lint ## everything that needs Go alone, the real API server and S3 server included
	go test ./...
# Again without the cache, which does not see what go list reads.
	go test -count=1 ./test/arch
	cd test/lab && go test ./...
	cd test/oracle && go test ./...

ORACLE_STATES ?= 100000
.PHONY: oracle
oracle: ## compare the model with the HPA controllers of five Kubernetes versions, and with KEDA
	cd test/kedaoracle && KEDA_ORACLE_TRACES=$$(($(ORACLE_STATES) / 10)) go test -vet=off -count=1 -timeout 2h -v .
	cd test/oracle && for module in go.mod v1.36.mod v1.35.mod v1.34.mod v1.33.mod; do \
	  ORACLE_STATES=$(ORACLE_STATES) ORACLE_HOURS=$$(($(ORACLE_STATES) / 240)) go test -modfile=$$module -count=1 -timeout 2h -v -run 'TestControllerAgrees|TestLongTraces' .; \
	done

# hey, wrk and python3-aiohttp are Debian packages, vegeta is go install
# github.com/tsenart/vegeta/v12@latest; what is not there is said to be absent.
BENCH_STREAMS ?= 50,200,500,1000,2000
BENCH_SECONDS ?= 10
BENCH_PYTHON ?= python3
.PHONY: bench-client
bench-client: ## compare bench's client with a bare reader, Python aiohttp, hey, wrk and vegeta (tables for test/BENCHMARKS.md)
	@go build -o bin/benchclient ./test/benchclient
	@bin/benchclient run -list $(BENCH_STREAMS) -seconds $(BENCH_SECONDS) -python $(BENCH_PYTHON)

# awscli and rclone are Debian packages; what is not there is said to be absent.
# The store's data and one model more must fit into memory (BENCH_SYNC_BYTES).
BENCH_SYNC_BYTES ?= 2GiB
BENCH_SYNC_ROUNDS ?= 3
BENCH_SYNC_MEMORY ?= 1GB,8GB,40GB
BENCH_SYNC_RECORD ?=
BENCH_AWS ?= aws
.PHONY: bench-sync
bench-sync: build servers ## compare sync-model with curl, sha256sum and aws or rclone, and with the machine's limits (BENCH_SYNC_RECORD=test/BENCHMARKS.md)
	@go build -o bin/benchsync ./test/benchsync
	@bin/benchsync run -versitygw $(LAB_DIR)/bin/versitygw -bytes $(BENCH_SYNC_BYTES) -rounds $(BENCH_SYNC_ROUNDS) -memory $(BENCH_SYNC_MEMORY) \
	  -aws $(BENCH_AWS) -record '$(BENCH_SYNC_RECORD)'

CHAOS ?= 200
.PHONY: chaos-sync
chaos-sync: servers ## kill 200 syncs at random moments under random faults (CHAOS=, CHAOS_SEED=)
	cd jobs/sync && LAB_VERSITYGW=$(LAB_DIR)/bin/versitygw CHAOS_RUNS=$(CHAOS) go test -count=1 -timeout 2h -v -run TestChaos .

.PHONY: knee-proof
knee-proof: ## find engines of known capacity 300 times, and say how close
	KNEE_RUNS=100 go test -count=1 -v -run TestSearchFindsKnownCapacity ./jobs/core/knee

.PHONY: lint
lint: ## gofmt, go vet, staticcheck
	@unformatted=$$(gofmt -l cmd plugins jobs manifests test); if [ -n "$$unformatted" ]; then echo "gofmt would change:" $$unformatted; exit 1; fi
	for module in . test/lab test/oracle; do (cd $$module && go vet ./... && go run $(STATICCHECK) ./...); done
# make oracle uses these; a change of the root's requirements makes them stale.
	for module in $(wildcard test/oracle/v*.mod); do go -C test/oracle list -modfile=$$(basename $$module) . >/dev/null; done

.PHONY: lab-up
lab-up: ## start the lab: a real cluster with KEDA, Prometheus, S3 and fake GPUs
	$(LAB) up

.PHONY: lab-down
lab-down: ## stop the lab and leave nothing behind
	$(LAB) down

.PHONY: lab-shell
lab-shell: build ## a shell with kubectl, the plugin and the lab's kubeconfig
	@config=$$($(LAB) kubeconfig) && KUBECONFIG=$$config KUBECTL_INFERENCE_IMAGE=lab.test/inference-job:dev PATH="$(CURDIR)/bin:$(LAB_DIR)/bin:$$PATH" bash

.PHONY: lab-test
lab-test: build ## the lab itself, and the stories on the real cluster
ifndef LAB_KUBECONFIG
	$(LAB) build
	cd test/lab && LAB=1 go test -count=1 -timeout 60m -v ./cluster
endif
	cd test/lab && LAB_STORIES=1 go test -count=1 -timeout 40m -parallel 1 -v ./stories

AGREE_MINUTES ?= 10
.PHONY: lab-agree
lab-agree: build ## explain every second while load moves, against the real controller (AGREE_MINUTES=10, LAB_HPA_SYNC=15s)
	cd test/lab && LAB_AGREE=$(AGREE_MINUTES) go test -count=1 -timeout $$(($(AGREE_MINUTES) + 30))m -v -run TestAgreement ./stories

.PHONY: demo
demo: build ## the whole loop, typed before your eyes
	@test/demo.sh

.PHONY: clean
clean: ## remove what was built here
	rm -rf bin dist

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14
