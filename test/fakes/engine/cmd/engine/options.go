package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine/model"
)

// options are the command line.
type options struct {
	model         string
	loadFormat    string
	host          string
	port          int
	names         []string
	apiKeys       []string
	gpuMemory     float64
	maxNumSeqs    int
	maxModelLen   int
	maxBatched    int
	blockSize     int
	numBlocks     int
	prefixCaching bool
	noPrefix      bool
	tokenDetails  bool

	speed           float64
	loadTime        time.Duration
	drain           time.Duration
	step            time.Duration
	perSequence     time.Duration
	perToken        time.Duration
	naturalLength   int
	reasoningTokens int
	admin           bool
	printURL        bool
}

// ignored are flags of vLLM that change nothing here. The first list takes a value, the second does not.
func ignored() (values, switches []string) {
	return []string{
			"reasoning-parser", "tool-call-parser", "dtype", "kv-cache-dtype", "quantization", "tensor-parallel-size",
			"pipeline-parallel-size", "data-parallel-size", "tokenizer", "revision", "tokenizer-revision", "seed",
			"swap-space", "download-dir", "chat-template", "generation-config", "model-loader-extra-config",
			"uvicorn-log-level", "distributed-executor-backend", "scheduling-policy", "compilation-config",
			"limit-mm-per-prompt", "config-format", "tokenizer-mode",
		}, []string{
			"enable-auto-tool-choice", "trust-remote-code", "enforce-eager", "enable-chunked-prefill",
			"no-enable-chunked-prefill", "disable-log-requests", "disable-log-stats", "disable-uvicorn-access-log",
			"enable-log-requests", "enable-server-load-tracking", "async-scheduling", "no-async-scheduling",
		}
}

// parse reads the arguments; usage receives the answer to --help. Flags that vLLM does not have are also read from the environment, as ENGINE_ and their
// name in capitals, so that the arguments of a real deployment need no change.
func parse(args []string, getenv func(string) string, usage io.Writer) (options, error) {
	var o options
	def := model.Default()
	f := pflag.NewFlagSet("engine", pflag.ContinueOnError)
	f.SortFlags = false
	f.SetOutput(usage)
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})

	f.StringVar(&o.model, "model", "", "directory or s3://bucket/prefix; also the first argument")
	f.StringVar(&o.loadFormat, "load-format", "auto", "dummy reads no weights; auto, safetensors and runai_streamer read all of them")
	f.StringVar(&o.host, "host", "", "address to listen on; default all, as vLLM, but with --print-url loopback alone")
	f.IntVar(&o.port, "port", 8000, "port to listen on, 0 for any")
	f.StringArrayVar(&o.names, "served-model-name", nil, "model id of the API; default the model as given")
	f.StringArrayVar(&o.apiKeys, "api-key", nil, "bearer token to demand (VLLM_API_KEY)")
	f.Float64Var(&o.gpuMemory, "gpu-memory-utilization", 0.9, "share of GPU memory, which decides the number of KV blocks")
	f.IntVar(&o.maxNumSeqs, "max-num-seqs", def.MaxNumSeqs, "requests that run at once")
	f.IntVar(&o.maxModelLen, "max-model-len", 0, "prompt plus output in tokens; default from config.json")
	f.IntVar(&o.maxBatched, "max-num-batched-tokens", def.MaxNumBatchedTokens, "tokens of one step")
	f.IntVar(&o.blockSize, "block-size", def.BlockSize, "tokens of one KV block")
	f.IntVar(&o.numBlocks, "num-gpu-blocks-override", 0, "number of KV blocks")
	f.BoolVar(&o.prefixCaching, "enable-prefix-caching", true, "reuse the KV blocks of equal beginnings")
	f.BoolVar(&o.noPrefix, "no-enable-prefix-caching", false, "do not")
	f.BoolVar(&o.tokenDetails, "enable-prompt-tokens-details", true, "report cached tokens in usage")

	own := pflag.NewFlagSet("own", pflag.ContinueOnError)
	own.Float64Var(&o.speed, "speed", 1, "divides all engine time, loading excepted")
	own.DurationVar(&o.loadTime, "load-time", 0, "time added to loading")
	loadSeconds := own.Float64("load-seconds", 0, "the same in seconds")
	own.DurationVar(&o.drain, "drain-time", 25*time.Second, "time for running requests after SIGTERM")
	own.DurationVar(&o.step, "step-time", def.Cost.Step, "fixed time of a step")
	own.DurationVar(&o.perSequence, "sequence-time", def.Cost.PerSequence, "time of a step for each sequence")
	own.DurationVar(&o.perToken, "prefill-token-time", def.Cost.PerPrefillToken, "time of a step for each prompt token")
	own.IntVar(&o.naturalLength, "natural-length", 256, "mean length of an answer that may end by itself, -1 for none")
	own.IntVar(&o.reasoningTokens, "reasoning-tokens", 0, "tokens at the start of a chat answer sent as reasoning")
	own.BoolVar(&o.admin, "admin", false, "open /admin and the fault header")
	own.BoolVar(&o.printURL, "print-url", false, "print the base URL on standard output once it answers")
	f.AddFlagSet(own)

	values, switches := ignored()
	for _, name := range values {
		f.String(name, "", "accepted, without effect")
	}
	for _, name := range switches {
		f.Bool(name, false, "accepted, without effect")
	}
	for _, name := range append(values, switches...) {
		if err := f.MarkHidden(name); err != nil {
			return o, fmt.Errorf("define flags: %w", err)
		}
	}

	if err := f.Parse(args); err != nil {
		return o, fmt.Errorf("parse arguments: %w", err)
	}
	if err := fromEnvironment(own, getenv); err != nil {
		return o, err
	}
	if o.host == "" && o.printURL {
		o.host = "127.0.0.1"
	}
	if *loadSeconds > 0 {
		o.loadTime += time.Duration(*loadSeconds * float64(time.Second))
	}
	if err := o.positional(f.Args()); err != nil {
		return o, err
	}
	if key := getenv("VLLM_API_KEY"); key != "" && len(o.apiKeys) == 0 {
		o.apiKeys = []string{key}
	}
	return o, nil
}

// fromEnvironment sets the flags that the command line left alone.
func fromEnvironment(own *pflag.FlagSet, getenv func(string) string) error {
	var errs []error
	own.VisitAll(func(flag *pflag.Flag) {
		name := "ENGINE_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		value := getenv(name)
		if value == "" || flag.Changed {
			return
		}
		if err := flag.Value.Set(value); err != nil {
			errs = append(errs, fmt.Errorf("read environment %s: %w", name, err))
		}
	})
	return errors.Join(errs...)
}

// positional takes the model from the arguments, after an optional "serve" as in `vllm serve MODEL`.
func (o *options) positional(args []string) error {
	if len(args) > 0 && args[0] == "serve" {
		args = args[1:]
	}
	if len(args) == 0 {
		return nil
	}
	if len(args) > 1 || o.model != "" {
		return fmt.Errorf("parse arguments: one model, not also %q", args[len(args)-1])
	}
	o.model = args[0]
	return nil
}

// dummy reports whether nothing is loaded.
func (o options) dummy() bool { return o.model == "" || o.loadFormat == "dummy" }

// The GPU that the default is sized for, and what the model takes of it: 24 GB, of which the driver leaves 24.1e9
// bytes; weights and activations of a 14B model in 4 bits; and KV of 48 layers with 8 heads of 128 in 16 bits.
const (
	gpuBytes    = 24.1e9
	modelBytes  = 10.638e9
	bytesPerKV  = 2 * 48 * 8 * 128 * 2
	fallbackLen = 15000
)

// kvBlocks derives the KV capacity from the share of GPU memory, unless it is given.
func (o options) kvBlocks() int {
	if o.numBlocks > 0 {
		return o.numBlocks
	}
	free := o.gpuMemory*gpuBytes - modelBytes
	return int(math.Max(0, free/float64(bytesPerKV*o.blockSize)))
}

// engineConfig is the configuration of the engine for a model whose own limit is maxLength, 0 if unknown.
func (o options) engineConfig(maxLength int) engine.Config {
	length := o.maxModelLen
	if length == 0 {
		length = maxLength
	}
	if length == 0 {
		length = fallbackLen
	}
	names, root := o.names, o.model
	if root == "" {
		root = "engine"
	}
	if len(names) == 0 {
		names = []string{root}
	}
	return engine.Config{
		Model: model.Config{
			Cost:                model.Cost{Step: o.step, PerSequence: o.perSequence, PerPrefillToken: o.perToken},
			MaxNumSeqs:          o.maxNumSeqs,
			MaxNumBatchedTokens: o.maxBatched,
			MaxModelLen:         length,
			BlockSize:           o.blockSize,
			NumBlocks:           o.kvBlocks(),
			PrefixCaching:       o.prefixCaching && !o.noPrefix,
		},
		Names:                names,
		Root:                 root,
		Speed:                o.speed,
		APIKeys:              o.apiKeys,
		Admin:                o.admin,
		NaturalLength:        o.naturalLength,
		ReasoningTokens:      o.reasoningTokens,
		HideCachedTokens:     !o.tokenDetails,
		GPUMemoryUtilization: o.gpuMemory,
	}
}
