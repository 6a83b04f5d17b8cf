package sync

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
)

// indexSuffix ends the name of a file that lists the shards of a model.
const indexSuffix = ".safetensors.index.json"

func isIndex(name string) bool { return strings.HasSuffix(name, indexSuffix) }

// missingShards returns the weights that an index names and that are not among
// the synced paths. vLLM does not notice: it serves a model with layers of
// uninitialised memory (mlx-vlm#1827).
func missingShards(name string, data []byte, synced map[string]bool) ([]string, error) {
	var index struct {
		Weights map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("read index %s: %w", name, err)
	}
	if len(index.Weights) == 0 {
		return nil, fmt.Errorf("read index %s: it lists no weights", name)
	}
	missing := make(map[string]bool)
	for _, shard := range index.Weights {
		if full := path.Join(path.Dir(name), shard); !synced[full] {
			missing[full] = true
		}
	}
	names := make([]string, 0, len(missing))
	for shard := range missing {
		names = append(names, shard)
	}
	slices.Sort(names)
	return names, nil
}
