// Package weights reads a model as an engine does when it starts: from a directory or an S3 prefix, every byte of every
// safetensors file, checked against its header. The content is thrown away; only what is missing or broken matters.
package weights

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// File is one file of a model.
type File struct {
	Name string // relative to the model, with slashes
	Size int64
}

// Source is where a model is read from.
type Source interface {
	// List returns the files at and below the model.
	List(ctx context.Context) ([]File, error)
	// Open reads one file from its start.
	Open(ctx context.Context, name string) (io.ReadCloser, error)
}

// Model is what a complete read has shown.
type Model struct {
	Files     int   // safetensors files
	Bytes     int64 // of those
	Tensors   int
	MaxLength int // max_position_embeddings of config.json in tokens, 0 if absent
	Type      string
}

// Load reads a model completely. It fails on the first missing or broken file. Progress, which may be nil, is called
// after each safetensors file.
func Load(ctx context.Context, src Source, progress func(done, total int)) (Model, error) {
	files, err := src.List(ctx)
	if err != nil {
		return Model{}, err
	}
	sizes := make(map[string]int64, len(files))
	var shards []string
	for _, f := range files {
		sizes[f.Name] = f.Size
		if path.Ext(f.Name) == ".safetensors" && path.Dir(f.Name) == "." {
			shards = append(shards, f.Name)
		}
	}
	slices.Sort(shards)
	m, err := readConfig(ctx, src, sizes)
	if err != nil {
		return Model{}, err
	}
	if len(shards) == 0 {
		return Model{}, errors.New("load weights: no *.safetensors file in the model")
	}
	placed, err := readIndex(ctx, src, sizes)
	if err != nil {
		return Model{}, err
	}
	for i, name := range shards {
		tensors, err := readShard(ctx, src, name, sizes[name])
		if err != nil {
			return Model{}, err
		}
		for tensor, file := range placed {
			if file == name && !tensors[tensor] {
				return Model{}, fmt.Errorf("load weights: tensor %s is not in %s, where %s places it", tensor, name, indexName)
			}
		}
		m.Files++
		m.Bytes += sizes[name]
		m.Tensors += len(tensors)
		if progress != nil {
			progress(i+1, len(shards))
		}
	}
	return m, nil
}

const indexName = "model.safetensors.index.json"

func readConfig(ctx context.Context, src Source, sizes map[string]int64) (Model, error) {
	var config struct {
		MaxPositionEmbeddings int    `json:"max_position_embeddings"`
		ModelType             string `json:"model_type"`
	}
	if _, ok := sizes["config.json"]; !ok {
		return Model{}, errors.New("load model: no config.json in the model")
	}
	if err := readJSON(ctx, src, "config.json", &config); err != nil {
		return Model{}, err
	}
	return Model{MaxLength: config.MaxPositionEmbeddings, Type: config.ModelType}, nil
}

// readIndex returns which file each tensor is in, and checks that those files exist.
func readIndex(ctx context.Context, src Source, sizes map[string]int64) (map[string]string, error) {
	if _, ok := sizes[indexName]; !ok {
		return nil, nil
	}
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := readJSON(ctx, src, indexName, &index); err != nil {
		return nil, err
	}
	for _, file := range index.WeightMap {
		if _, ok := sizes[file]; !ok {
			return nil, fmt.Errorf("load weights: %s is missing, but %s names it", file, indexName)
		}
	}
	return index.WeightMap, nil
}

func readJSON(ctx context.Context, src Source, name string, into any) error {
	r, err := src.Open(ctx, name)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := json.NewDecoder(r).Decode(into); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

// ErrLocation is returned for a model that is neither a directory nor an S3 prefix.
var ErrLocation = errors.New("not a directory and not s3://bucket/prefix")

// SplitS3 returns bucket and prefix of an s3:// address, and whether it is one. The prefix ends with a slash, unless
// it is empty.
func SplitS3(location string) (bucket, prefix string, ok bool) {
	rest, ok := strings.CutPrefix(location, "s3://")
	if !ok {
		return "", "", false
	}
	bucket, prefix, _ = strings.Cut(rest, "/")
	prefix = strings.Trim(prefix, "/")
	if prefix != "" {
		prefix += "/"
	}
	return bucket, prefix, bucket != ""
}
