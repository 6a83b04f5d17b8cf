package hub

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// rowBytes is one row of a generated tensor: 1024 numbers of BF16.
const rowBytes = 2048

type tensor struct {
	DType   string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// generate makes the files of a small but genuine model repository, in the
// layout that transformers writes.
func generate(model Model) map[string]content {
	files := map[string]content{
		".gitattributes":          bytesContent([]byte("*.safetensors filter=lfs diff=lfs merge=lfs -text\n")),
		"README.md":               bytesContent(fmt.Appendf(nil, "---\nlicense: apache-2.0\n---\n# %s\n\nGenerated weights for tests.\n", model.Name)),
		"config.json":             jsonContent(configOf(model)),
		"generation_config.json":  jsonContent(map[string]any{"bos_token_id": 0, "eos_token_id": 1, "temperature": 0.6, "top_p": 0.95}),
		"tokenizer.json":          jsonContent(tokenizer()),
		"tokenizer_config.json":   jsonContent(map[string]any{"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "model_max_length": 32768}),
		"special_tokens_map.json": jsonContent(map[string]any{"bos_token": "<s>", "eos_token": "</s>"}),
		"src/__init__.py":         bytesContent(nil),
	}
	weights := make(map[string]string)
	left := model.Bytes / 2 * 2
	total := left
	for shard := range model.Shards {
		path := fmt.Sprintf("model-%05d-of-%05d.safetensors", shard+1, model.Shards)
		if model.Shards == 1 {
			path = "model.safetensors"
		}
		size := left
		if shard < model.Shards-1 {
			size = min(left, total/int64(model.Shards)/rowBytes*rowBytes)
		}
		left -= size
		head, names := safetensorsHead(size, shard)
		for _, name := range names {
			weights[name] = path
		}
		files[path] = generated(head, size, seedOf(model, path))
	}
	if model.Shards > 1 {
		files["model.safetensors.index.json"] = jsonContent(map[string]any{
			"metadata": map[string]any{"total_size": total}, "weight_map": weights,
		})
	}
	return files
}

// safetensorsHead is the length prefix and the header of a file that holds
// size bytes of BF16 tensors, padded with spaces to 8 bytes as the format's own
// writer does. It returns the tensors' names too.
func safetensorsHead(size int64, shard int) ([]byte, []string) {
	header := map[string]any{"__metadata__": map[string]string{"format": "pt"}}
	var names []string
	add := func(name string, shape []int64, from, to int64) {
		header[name] = tensor{DType: "BF16", Shape: shape, Offsets: [2]int64{from, to}}
		names = append(names, name)
	}
	rows := size / rowBytes
	quarter := max(1, rows/4)
	var offset int64
	for layer := 0; rows > 0; layer++ {
		take := min(rows, quarter)
		add(fmt.Sprintf("model.layers.%d.%d.mlp.down_proj.weight", shard, layer), []int64{take, rowBytes / 2}, offset, offset+take*rowBytes)
		offset += take * rowBytes
		rows -= take
	}
	if rest := size - offset; rest > 0 {
		add(fmt.Sprintf("model.layers.%d.norm.weight", shard), []int64{rest / 2}, offset, size)
	}
	text := mustJSON(header)
	for len(text)%8 != 0 {
		text = append(text, ' ')
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), names
}

func configOf(model Model) map[string]any {
	return map[string]any{
		"_name_or_path": model.Name, "architectures": []string{"Qwen2ForCausalLM"}, "model_type": "qwen2", "torch_dtype": "bfloat16",
		"hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 512,
		"max_position_embeddings": 32768,
	}
}

func tokenizer() map[string]any {
	vocabulary := make(map[string]int, 512)
	for i := range 512 {
		vocabulary[fmt.Sprintf("t%d", i)] = i
	}
	return map[string]any{"version": "1.0", "model": map[string]any{"type": "BPE", "vocab": vocabulary, "merges": []string{}}}
}

func jsonContent(value any) content { return bytesContent(append(mustJSON(value), '\n')) }

// mustJSON encodes values of this package, for which encoding cannot fail. Map
// keys come out sorted, so the bytes are the same in every run.
func mustJSON(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return data
}
