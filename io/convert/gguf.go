package convert

import (
	"fmt"
	"hash"
	"os"
	"path/filepath"

	"github.com/moeflux/moeflux-actor/io/ggufmodel"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/tokenizer"
)

// ggufTensors is a GGUF file as a source: its tensors have their names in the pack and the types
// that safetensors has for them, or else the name of a quant.Block.
type ggufTensors struct{ model *ggufmodel.Model }

func (g *ggufTensors) Names() []string { return g.model.Names() }

// Tensor returns a tensor, which in errors has the name that the file gives it.
func (g *ggufTensors) Tensor(name string) (safetensors.Tensor, bool) {
	t := g.model.Tensor(name)
	if t == nil {
		return safetensors.Tensor{}, false
	}
	return safetensors.Tensor{Name: t.Name, DType: safetensors.DType(t.Type.Name), Shape: ggufmodel.Shape(name, t), Data: t.Data}, true
}

func (g *ggufTensors) Drop(data []byte) { g.model.File.Drop(data) }

func (g *ggufTensors) Close() error { return g.model.Close() }

// openGGUF is openInput for a file.
func openGGUF(path string, o Options) (*input, error) {
	m, err := ggufmodel.Open(path)
	if err != nil {
		return nil, fmt.Errorf("convert: %w", err)
	}
	in := &input{name: modelName(path), config: m.ConfigJSON, cfg: m.Config, ckpt: &ggufTensors{m}}
	in.shards = func(h hash.Hash) error { return printParts(h, m) }
	if err = in.takeText(m); err == nil {
		err = in.check(o)
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	return in, nil
}

// takeText makes the small files of a checkpoint.
func (in *input) takeText(m *ggufmodel.Model) error {
	text, err := m.Text()
	if err != nil {
		return fmt.Errorf("convert: %w", err)
	}
	in.vocab = func() (*tokenizer.Tokenizer, error) { return text.Tokenizer, text.Refused }
	for _, f := range []struct {
		name    string
		content []byte
	}{{configName, m.ConfigJSON}, {tokenizerName, text.TokenizerJSON}, {"tokenizer_config.json", text.ConfigJSON}} {
		if f.content != nil {
			in.small = append(in.small, smallFile{name: f.name, size: int64(len(f.content)), content: f.content})
		}
	}
	return nil
}

// printParts adds the files of a model.
func printParts(h hash.Hash, m *ggufmodel.Model) error {
	for _, f := range m.File.Files() {
		info, err := os.Stat(f.Path())
		if err != nil {
			return fmt.Errorf("convert: %w", err)
		}
		fmt.Fprintf(h, "part %q %d %d\n", filepath.Base(f.Path()), info.Size(), info.ModTime().UnixNano())
	}
	for _, name := range m.Names() {
		t := m.Tensor(name)
		fmt.Fprintf(h, "tensor %q %q %v %v %d %d\n", name, t.Name, t.Type, t.Shape, t.Part, t.OffsetBytes)
	}
	return nil
}
