package safetensors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The names of a checkpoint's files.
const (
	singleName = "model.safetensors"
	indexName  = "model.safetensors.index.json"
)

// Checkpoint is all tensors of a checkpoint directory, from one file or several.
type Checkpoint struct {
	files []*File          // ascending by path
	from  map[string]*File // by tensor name
}

// OpenDir opens the checkpoint in dir: the shards that model.safetensors.index.json names, or
// model.safetensors if there is no index. It ignores tensors that the index does not name. It
// reports all missing shards and tensors together, as *FormatErrors.
func OpenDir(dir string) (*Checkpoint, error) {
	index := filepath.Join(dir, indexName)
	raw, err := os.ReadFile(index)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return openSingle(dir)
	case err != nil:
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	weightMap, err := parseIndex(index, raw)
	if err != nil {
		return nil, err
	}
	return openShards(dir, index, weightMap)
}

func openSingle(dir string) (*Checkpoint, error) {
	f, err := Open(filepath.Join(dir, singleName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("safetensors: %s holds neither %s nor %s: %w", dir, singleName, indexName, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{files: []*File{f}, from: map[string]*File{}}
	for _, name := range f.names {
		c.from[name] = f
	}
	return c, nil
}

// parseIndex returns the file name of each tensor.
func parseIndex(path string, raw []byte) (map[string]string, error) {
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(raw, &index); err != nil {
		return nil, &FormatError{Path: path, Why: "not a valid index: " + err.Error(), Err: err}
	}
	if len(index.WeightMap) == 0 {
		return nil, &FormatError{Path: path, Why: "weight_map is missing or empty"}
	}
	for tensor, file := range index.WeightMap {
		if file == "" || file == "." || file == ".." || strings.ContainsAny(file, "/\\\x00") {
			return nil, &FormatError{Path: path, Tensor: tensor, Why: fmt.Sprintf("shard %q is not a file name in the same directory", file)}
		}
	}
	return index.WeightMap, nil
}

func openShards(dir, index string, weightMap map[string]string) (*Checkpoint, error) {
	c := &Checkpoint{from: make(map[string]*File, len(weightMap))}
	var names []string
	for _, name := range weightMap {
		names = append(names, name)
	}
	slices.Sort(names)
	opened := map[string]*File{}
	var errs []error
	for _, name := range slices.Compact(names) {
		f, err := Open(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			err = &FormatError{Path: index, Why: fmt.Sprintf("shard %s is missing", name), Err: err}
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		opened[name] = f
		c.files = append(c.files, f)
	}
	missing := map[string][]string{}
	for tensor, name := range weightMap {
		f := opened[name]
		if f == nil {
			continue // reported above
		}
		if _, ok := f.tensors[tensor]; !ok {
			missing[name] = append(missing[name], tensor)
			continue
		}
		c.from[tensor] = f
	}
	for _, name := range slices.Compact(names) {
		slices.Sort(missing[name])
		for _, tensor := range missing[name] {
			errs = append(errs, &FormatError{Path: opened[name].path, Tensor: tensor, Why: "listed in " + indexName + ", but not in this shard"})
		}
	}
	if len(errs) > 0 {
		c.Close()
		return nil, errors.Join(errs...)
	}
	return c, nil
}

// Files returns the opened files, ascending by path.
func (c *Checkpoint) Files() []*File { return slices.Clone(c.files) }

// Names returns the names of all tensors, sorted.
func (c *Checkpoint) Names() []string {
	out := make([]string, 0, len(c.from))
	for name := range c.from {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Tensor returns a tensor by name.
func (c *Checkpoint) Tensor(name string) (Tensor, bool) {
	f := c.from[name]
	if f == nil {
		return Tensor{}, false
	}
	return f.Tensor(name)
}

// Drop is File.Drop on the file that the view belongs to.
func (c *Checkpoint) Drop(data []byte) {
	for _, f := range c.files {
		f.Drop(data)
	}
}

// Close unmaps all files. Their views must not be used afterwards.
func (c *Checkpoint) Close() error {
	var errs []error
	for _, f := range c.files {
		errs = append(errs, f.Close())
	}
	c.files, c.from = nil, nil
	return errors.Join(errs...)
}
