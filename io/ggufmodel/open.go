package ggufmodel

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/io/gguf"
	"github.com/moeflux/moeflux-actor/model"
)

// Model is an open GGUF file, or all parts of one, of a family that the engine has. It may be used
// from many goroutines until Close.
type Model struct {
	File   *gguf.Model
	Config *model.Config
	// ConfigJSON is what Config was parsed from: a config.json as the family's checkpoints have it.
	ConfigJSON []byte
	// Unused are the tensors that a run leaves out, because they only propose further tokens.
	Unused []*gguf.Tensor

	rule  rule
	names map[string]*gguf.Tensor // by their names in a pack
}

// ArchError reports a file of an architecture that is not read.
type ArchError struct {
	Path string
	Name string // general.architecture; "" if the file does not say
}

func (e *ArchError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("gguf: %s has no general.architecture, so nobody can tell what its tensors mean", e.Path)
	}
	why := ""
	if lacks := model.MissingGGUF(e.Name); lacks != "" {
		why = ": the engine lacks " + lacks
	}
	return fmt.Sprintf("gguf: %s: the architecture %q is not read from GGUF files%s; read are %s", e.Path, e.Name, why, strings.Join(Architectures(), ", "))
}

// Architectures returns what general.architecture may be, sorted.
func Architectures() []string {
	var out []string
	for arch := range rules {
		out = append(out, model.GGUFName(arch))
	}
	slices.Sort(out)
	return out
}

// Open opens the model that path is, or of which it is any part, and accounts for every tensor's
// name. Errors: *gguf.FormatError (several joined), *ArchError, and those of model.ParseConfig.
func Open(path string) (*Model, error) {
	f, err := gguf.OpenModel(path)
	if err != nil {
		return nil, err
	}
	m := &Model{File: f}
	if err := m.read(path); err != nil {
		f.Close()
		return nil, err
	}
	return m, nil
}

// read makes of the file what it stands for.
func (m *Model) read(path string) (err error) {
	name, _ := m.File.Metadata().Text("general.architecture")
	arch, _ := model.ArchOfGGUF(name)
	r, known := rules[arch]
	if !known {
		return &ArchError{Path: path, Name: name}
	}
	m.rule = r
	k := &keys{path: path, prefix: name + ".", file: m.File}
	if m.ConfigJSON, err = json.MarshalIndent(k.config(arch, r), "", "  "); err != nil {
		return fmt.Errorf("gguf: %s: %w", path, err)
	}
	if err := k.failed(); err != nil {
		return err
	}
	if m.Config, err = model.ParseConfig(m.ConfigJSON, nil); err != nil {
		return fmt.Errorf("gguf: %s: what its keys say, as a config.json, cannot be: %w", path, err)
	}
	return m.index()
}

// Close closes the files. Views of them must not be used afterwards.
func (m *Model) Close() error { return m.File.Close() }

// TiledHeads reports whether the value heads of linear attention stand as llama.cpp tiles them, see
// TileOrder.
func (m *Model) TiledHeads() bool {
	return m.rule.tiled && m.Config.LinearNumValueHeads > m.Config.LinearNumKeyHeads
}

// TileOrder returns where a file of tiled heads has each value head: head h of the checkpoint,
// which belongs to key head h/(values/keys), is at place TileOrder[h].
func TileOrder(keys, values int) []int {
	each := values / keys
	out := make([]int, values)
	for h := range out {
		out[h] = h%each*keys + h/each
	}
	return out
}
