#!/usr/bin/env bash
# The whole loop, typed before your eyes, on a real cluster of its own: a pinned
# revision goes to a bucket, is served on (pretended) GPUs, measured, tuned, and
# every scaling decision is explained. Without root or off Linux, the part that
# needs no cluster.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/bin:$PATH"

bold=$'\e[1m' faint=$'\e[2m' plain=$'\e[0m'
if [ ! -t 1 ] || [ -n "${NO_COLOR:-}" ]; then bold='' faint='' plain=''; fi

say() { printf '\n%s# %s%s\n' "$faint" "$*" "$plain"; }
# typed COMMAND...: show a command line as a person would type it, and run it.
typed() {
  printf '\n%s$ %s%s\n' "$bold" "$(quote "$@")" "$plain"
  "$@"
}
# saved FILE COMMAND...: the same, with the output in FILE.
saved() {
  local file=$1
  shift
  printf '\n%s$ %s > %s%s\n' "$bold" "$(quote "$@")" "$(basename "$file")" "$plain"
  "$@" >"$file"
}
# quote ARG...: the arguments, quoted only where a shell needs it.
quote() {
  local word line=''
  for word in "$@"; do
    if [[ $word =~ ^[A-Za-z0-9_./:,=@+-]+$ ]]; then line+=" $word"; else line+=" '$word'"; fi
  done
  printf '%s' "${line# }"
}
finish() { printf '\nthe demo took %d s\n' "$SECONDS"; }

# without_cluster shows what needs no cluster: the engine stand-in, a local
# measurement, its envelope, and a saved scaling decision explained.
without_cluster() {
  local work engine url
  work=$(mktemp -d)
  say "a stand-in for vLLM: the same API and metrics, a queueing model inside"
  go build -o "$work/engine" ./test/fakes/engine/cmd/engine
  "$work/engine" --port 0 --print-url --speed 10 --served-model-name demo --load-format dummy >"$work/url" 2>"$work/log" &
  engine=$!
  # shellcheck disable=SC2064 # expand now: the variables are local
  trap "kill $engine 2>/dev/null || true; rm -rf '$work'" EXIT
  for _ in $(seq 100); do
    url=$(grep -m1 -o 'http://[^ ]*' "$work/url" || true)
    [ -n "$url" ] && break
    sleep 0.1
  done
  say "what does it carry?"
  saved "$work/report.json" kubectl-inference bench --local --url "$url" --concurrency 1,5,10,20,40 --prompt-tokens 1024 --output-tokens 128 --warmup 2s --duration 10s --name demo -o json
  typed kubectl-inference envelope "$work/report.json"
  say "why are there N replicas? from objects that someone saved and sent"
  typed kubectl-inference explain-scaling -f manifests/examples/scaling-decision.yaml
  finish
}

if [ "$(uname -s)" != Linux ] || { [ "$(id -u)" != 0 ] && [ -z "${LAB_KUBECONFIG:-}" ]; }; then
  echo "A cluster of its own needs Linux and root; on another cluster, such as kind, set LAB_KUBECONFIG."
  echo "Here is the part that needs no cluster."
  without_cluster
  exit 0
fi

say "a real cluster: etcd, API server, controllers, kubelet on containerd, KEDA, Prometheus, S3, fake GPUs"
make --no-print-directory lab-up
KUBECONFIG=$(go -C test/lab run ./cmd/lab kubeconfig)
export KUBECONFIG
export KUBECTL_INFERENCE_IMAGE=lab.test/inference-job:dev
LAB_DIR=${LAB_DIR:-$PWD/.lab}
export PATH="$LAB_DIR/bin:$PATH"

namespace=llm-serving
model=lab/deepseek-r1-distill-qwen-14b-awq
sha=$(kubectl logs -n hub deploy/hub | awk -v model=$model '$1 == "model" && $2 == model { print $3; exit }')
hub=http://hub.hub.svc:8080
s3=http://s3.storage.svc:7070

say "a namespace with the least rights for the Jobs, and the bucket's keys in a Secret"
# What an earlier demo left would be measured with.
kubectl delete namespace $namespace --ignore-not-found >/dev/null
kubectl create namespace $namespace >/dev/null
kubectl config set-context --current --namespace=$namespace >/dev/null
kubectl create secret generic s3-keys --dry-run=client -o yaml \
  --from-literal=AWS_ACCESS_KEY_ID="$(kubectl get secret -n storage s3-root -o jsonpath='{.data.AWS_ACCESS_KEY_ID}' | base64 -d)" \
  --from-literal=AWS_SECRET_ACCESS_KEY="$(kubectl get secret -n storage s3-root -o jsonpath='{.data.AWS_SECRET_ACCESS_KEY}' | base64 -d)" | kubectl apply -f - >/dev/null
kubectl create serviceaccount deepseek-r1-14b --dry-run=client -o yaml | kubectl apply -f - >/dev/null
printf '\n%s$ kubectl inference manifests rbac | kubectl apply -f -%s\n' "$bold" "$plain"
kubectl inference manifests rbac | kubectl apply -f -

say "1. is the model in the bucket exactly the pinned revision?"
typed kubectl inference sync-model $model --revision "$sha" --to s3://models/base --hub-endpoint $hub --s3-endpoint $s3 --s3-secret s3-keys

say "2. serve it: the seed platform's own InferenceService, on a GPU node, from that prefix"
say "   (the engine is a stand-in that runs ten times as fast as the real GPU)"
typed kubectl inference rollout deepseek-r1-14b --model "s3://models/base/$model/$sha" -f manifests/examples/seed/inferenceservice.yaml \
  --s3-endpoint $s3 --s3-secret s3-keys --cpu 50m --memory 256Mi --engine-env ENGINE_SPEED=10,ENGINE_LOAD_SECONDS=5
typed kubectl apply -f manifests/examples/seed/scaledobject.yaml

say "3. how much does one replica carry? the seed's concurrency profile, short windows"
typed kubectl inference bench isvc/deepseek-r1-14b --name "demo-$(date +%H%M%S)" --concurrency 1,5,10,20,40 --prompt-tokens 1024 --output-tokens 128 \
  --warmup 3s --duration 12s --scrape-interval 2s --allow-scaling
run=$(kubectl inference bench list -o jsonpath='{.items[0].name}')

say "4. which thresholds follow? shown first, then applied"
saved "$LAB_DIR/envelope.json" kubectl inference envelope "$run" -o json
typed kubectl inference tune isvc/deepseek-r1-14b --from "$LAB_DIR/envelope.json"
saved "$LAB_DIR/tuning-plan.json" kubectl inference tune isvc/deepseek-r1-14b --from "$LAB_DIR/envelope.json" --apply -o json

say "5. more load than one replica carries: KEDA sees the queue, the HPA adds replicas"
typed kubectl inference bench isvc/deepseek-r1-14b --name "load-$(date +%H%M%S)" --concurrency 80 --prompt-tokens 1024 --output-tokens 128 \
  --warmup 3s --duration 100s --scrape-interval 2s --allow-scaling --wait=false
for _ in $(seq 60); do
  replicas=$(kubectl get deployment deepseek-r1-14b-predictor -o jsonpath='{.spec.replicas}')
  [ "$replicas" -ge 2 ] && break
  sleep 2
done
typed kubectl get hpa,deployments

say "the envelope of the measurement"
typed kubectl inference envelope "$run"
say "6. why are there $replicas replicas right now?"
typed kubectl inference explain-scaling isvc/deepseek-r1-14b

cat <<END

Look around:   make lab-shell         (kubectl and kubectl inference on this cluster)
               kubectl get pods -A; kubectl inference explain-scaling isvc/deepseek-r1-14b
               kubectl inference bench list; kubectl inference bench get $run
Take it down:  make lab-down
END
finish
