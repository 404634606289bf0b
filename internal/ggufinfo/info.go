// Package ggufinfo tells what a GGUF file holds, in the words that inspect has for a packed model,
// and what the program can do with it.
package ggufinfo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/internal/figures"
	"github.com/moeflux/moeflux-actor/io/gguf"
	"github.com/moeflux/moeflux-actor/io/ggufmodel"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/tokenizer"
)

// Info is what a file says. Its JSON is that of the command inspect; where fields have the names of
// those for a packed model, they mean the same.
type Info struct {
	File    string          `json:"file"`
	Format  Format          `json:"format"`
	Name    string          `json:"name,omitempty"`
	Arch    model.Arch      `json:"architecture"`      // the engine's family; "" if it has none
	Called  string          `json:"gguf_architecture"` // as the file has it
	Shape   figures.Shape   `json:"shape"`
	Bytes   figures.Weights `json:"bytes"`
	Unused  int64           `json:"unused"` // bytes of tensors that a run would leave out: draft layers
	Tensors []TypeBytes     `json:"tensors"`
	Text    Text            `json:"text"`
	// why the program does not run the file as it is; nothing if it does
	Missing []string `json:"missing"`
}

// Format is what the container is.
type Format struct {
	Version int   `json:"version"`
	Parts   int   `json:"parts"`
	Bytes   int64 `json:"bytes"` // of all parts
}

// TypeBytes counts the tensors that are stored in one way.
type TypeBytes struct {
	Type     string `json:"type"`
	Tensors  int    `json:"tensors"`
	Bytes    int64  `json:"bytes"`
	Unpacked bool   `json:"unpacked"` // the program knows what the numbers are
}

// Text is what the metadata has of text.
type Text struct {
	Tokenizer string `json:"tokenizer"`     // kind: gpt2 is byte pairs, llama is SentencePiece
	Splitter  string `json:"pre_tokenizer"` // name of the rule that cuts text before
	Tokens    int    `json:"tokens"`
	Template  bool   `json:"chat_template"`
	// why the program cannot make the same ids of a text; "" if it can
	Refused string `json:"refused,omitempty"`
}

// Read tells what the model is that path is a file of, any part if there are several.
func Read(path string) (*Info, error) {
	m, err := gguf.OpenModel(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	files := m.Files()
	r := &Info{File: path, Format: Format{Version: files[0].Version, Parts: len(files), Bytes: m.Bytes()}}
	r.Name, _ = m.Metadata().Text("general.name")
	r.Called, _ = m.Metadata().Text("general.architecture")
	r.Arch, _ = model.ArchOfGGUF(r.Called)
	r.Tensors = typesOf(m)
	r.Text = textOf(m.Metadata())
	s := &survey{keys: keys{m.Metadata(), r.Called + "."}, model: m, layers: map[int]*layer{}}
	s.tensors()
	r.Shape, r.Bytes, r.Unused = s.shape(), s.weights(), s.unused
	r.Missing = r.missing(s)
	return r, nil
}

// typesOf counts the tensors of each type, the largest share first.
func typesOf(m *gguf.Model) []TypeBytes {
	index := map[*gguf.Type]int{}
	var out []TypeBytes
	for t := range m.Tensors {
		i, ok := index[t.Type]
		if !ok {
			i = len(out)
			index[t.Type] = i
			out = append(out, TypeBytes{Type: t.Type.Name, Unpacked: t.Type.Format != nil})
		}
		out[i].Tensors++
		out[i].Bytes += int64(len(t.Data))
	}
	slices.SortStableFunc(out, func(a, b TypeBytes) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return out
}

// textOf reads what the metadata has of text.
func textOf(m *gguf.Metadata) (t Text) {
	t.Tokenizer, _ = m.Text("tokenizer.ggml.model")
	t.Splitter, _ = m.Text("tokenizer.ggml.pre")
	tokens, _ := m.Get("tokenizer.ggml.tokens")
	t.Tokens = tokens.Len
	_, t.Template = m.Text("tokenizer.chat_template")
	if t.Tokens == 0 {
		return t
	}
	v, err := m.Tokenizer()
	if err == nil {
		_, err = tokenizer.FromGGUF(v)
	}
	if err != nil {
		t.Refused = err.Error()
	}
	return t
}

// missing lists what stands between the file and a run.
func (r *Info) missing(s *survey) []string {
	out := []string{}
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if r.Called == "" {
		add("it has no general.architecture, so its tensors mean nothing certain")
	} else if r.Arch == "" {
		add("its architecture %q is of no family that the engine has: %s", r.Called, join(model.Known()))
	}
	for _, t := range r.Tensors {
		if !t.Unpacked {
			add("%s stored as %s, of which the program knows the size alone", figures.Counted(t.Tensors, "tensor"), t.Type)
		}
	}
	if r.Arch != "" {
		config, lines := parsed(r.File)
		if config != nil {
			r.attention(config)
		}
		for _, line := range lines {
			add("%s", line)
		}
	}
	switch {
	case r.Shape.Experts == 0:
		add("it has no experts: %q is missing or 0", s.keys.prefix+"expert_count")
	case r.Bytes.Streamed == 0:
		add("it has no tensors of experts")
	}
	if n := len(s.layers) - s.drafts(); n != r.Shape.Layers {
		add("%q tells of %s, but there are tensors of %d", s.keys.prefix+"block_count", figures.Counted(r.Shape.Layers, "layer"), n)
	}
	switch {
	case r.Text.Tokens == 0:
		add("it has no tokens: tokenizer.ggml.tokens is missing")
	case r.Text.Refused != "":
		add("its text is not read: %s", r.Text.Refused)
	}
	return out
}

// attention takes from the configuration which layers have a window, which tensors do not tell, and
// the heads of layers without one.
func (r *Info) attention(c *model.Config) {
	r.Shape.FullLayers, r.Shape.WindowLayers = c.Count(model.FullAttention), c.Count(model.WindowAttention)
	r.Shape.Heads, r.Shape.KVHeads = c.NumAttentionHeads, c.NumKeyValueHeads
}

// parsed returns the configuration of a file, or what the reader of models finds wrong with it,
// line by line.
func parsed(path string) (*model.Config, []string) {
	m, err := ggufmodel.Open(path)
	if err == nil {
		m.Close()
		return m.Config, nil
	}
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "gguf: "+path+": ") // which is said above
	}
	return nil, lines
}

func join(archs []model.Arch) string {
	names := make([]string, len(archs))
	for i, a := range archs {
		names[i] = string(a)
	}
	return strings.Join(names, ", ")
}
