package safetensors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The names of a checkpoint's files.
const (
	singleName = "model.safetensors"
	IndexName  = "model.safetensors.index.json" // says which file each tensor is in
)

// Checkpoint is all tensors of a checkpoint directory, from one file or several.
type Checkpoint struct {
	files []*File          // ascending by path
	from  map[string]*File // by tensor name
}

// OpenDir opens the checkpoint in dir: the shards that model.safetensors.index.json names, or
// model.safetensors if there is no index. It ignores tensors that the index does not name. It
// reports all missing shards and tensors together, as *FormatErrors.
func OpenDir(dir string) (*Checkpoint, error) { return OpenDirWith(dir, Open) }

// OpenDirWith is OpenDir with files opened by open, which is given each one's path.
func OpenDirWith(dir string, open func(path string) (*File, error)) (*Checkpoint, error) {
	weightMap, err := readIndex(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return openSingle(dir, open)
	case err != nil:
		return nil, err
	}
	return openShards(dir, weightMap, open)
}

// Shards returns the names of the files that the tensors of a checkpoint directory are in, sorted,
// whether they are there or not.
func Shards(dir string) ([]string, error) {
	weightMap, err := readIndex(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []string{singleName}, nil
	case err != nil:
		return nil, err
	}
	return shardNames(weightMap), nil
}

// shardNames returns the file names of an index, sorted.
func shardNames(weightMap map[string]string) []string {
	return slices.Compact(slices.Sorted(maps.Values(weightMap)))
}

// readIndex returns the file name of each tensor. The error is fs.ErrNotExist if there is no index.
func readIndex(dir string) (map[string]string, error) {
	path := filepath.Join(dir, IndexName)
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	return parseIndex(path, raw)
}

func openSingle(dir string, open func(string) (*File, error)) (*Checkpoint, error) {
	f, err := open(filepath.Join(dir, singleName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("safetensors: %s holds neither %s nor %s: %w", dir, singleName, IndexName, fs.ErrNotExist)
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

func openShards(dir string, weightMap map[string]string, open func(string) (*File, error)) (*Checkpoint, error) {
	c := &Checkpoint{from: make(map[string]*File, len(weightMap))}
	names := shardNames(weightMap)
	opened := map[string]*File{}
	var errs []error
	for _, name := range names {
		f, err := open(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			err = &FormatError{Path: filepath.Join(dir, IndexName), Why: fmt.Sprintf("shard %s is missing", name), Err: err}
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
	for _, name := range names {
		slices.Sort(missing[name])
		for _, tensor := range missing[name] {
			errs = append(errs, &FormatError{Path: opened[name].path, Tensor: tensor, Why: "listed in " + IndexName + ", but not in this shard"})
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

// FileOf returns the file that a tensor is in, or nil.
func (c *Checkpoint) FileOf(tensor string) *File { return c.from[tensor] }

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
