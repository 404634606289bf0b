package convert_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// Every defect of a source is an error that names the tensor, and nothing is written.
func TestConvertRefusesTensors(t *testing.T) {
	const p = "model.layers.0."
	reshape := func(name string, shape ...int) func(*checkpoint) {
		return func(c *checkpoint) {
			x := c.tensors[name]
			x.Shape = shape
			c.tensors[name] = x
		}
	}
	retype := func(name string, d safetensors.DType, shape ...int) func(*checkpoint) {
		return func(c *checkpoint) {
			x := c.tensors[name]
			x.DType, x.Shape = d, shape
			c.tensors[name] = x
		}
	}
	remove := func(name string) func(*checkpoint) { return func(c *checkpoint) { delete(c.tensors, name) } }
	for _, c := range []struct {
		name   string
		change func(*checkpoint)
		tensor string
	}{
		{"no embedding", remove("model.embed_tokens.weight"), "model.embed_tokens.weight"},
		{"no head", remove("lm_head.weight"), "lm_head.weight"},
		{"no norm", remove("model.norm.weight"), "model.norm.weight"},
		{"no router", remove(p + "mlp.gate.weight"), p + "mlp.gate.weight"},
		{"no experts", remove(p + "mlp.experts.gate_up_proj"), p + "mlp.switch_mlp.gate_proj.weight"},
		{"no down projections", remove(p + "mlp.experts.down_proj"), p + "mlp.experts.down_proj"},
		{"no A_log", remove(p + "linear_attn.A_log"), p + "linear_attn.A_log"},
		{"transposed matrix", reshape("lm_head.weight", cpHidden, cpVocab), "lm_head.weight"},
		{"flat matrix", reshape("lm_head.weight", cpHidden*cpVocab), "lm_head.weight"},
		{"norm with two axes", reshape("model.norm.weight", 1, cpHidden), "model.norm.weight"},
		{"experts of another number", reshape(p+"mlp.experts.down_proj", cpExperts*cpHidden, cpInter, 1), p + "mlp.experts.down_proj"},
		{"gate and up apart", reshape(p+"mlp.experts.gate_up_proj", 2*cpExperts, cpInter, cpHidden), p + "mlp.experts.gate_up_proj"},
		{"matrix of integers", retype("lm_head.weight", "I16", cpVocab, cpHidden), "lm_head.weight"},
		{"matrix of 8-bit floats", retype("lm_head.weight", "F8_E4M3", cpVocab, 2*cpHidden), "lm_head.weight"},
		{"codes without scales", retype("lm_head.weight", "U32", cpVocab, cpHidden/2), "lm_head.weight"},
		{"norm of integers", retype("model.norm.weight", "U16", cpHidden), "model.norm.weight"},
		{"experts of integers", retype(p+"mlp.experts.down_proj", "I16", cpExperts, cpHidden, cpInter), p + "mlp.experts.down_proj"},
		{"convolution of another shape", reshape(p+"linear_attn.conv1d.weight", cpConv, 4), p + "linear_attn.conv1d.weight"},
		{"an unknown tensor", func(c *checkpoint) { c.add(p+"self_attn.q_proj.bias", safetensors.BF16, 4) }, p + "self_attn.q_proj.bias"},
		{"a layer more", func(c *checkpoint) { c.add("model.layers.2.input_layernorm.weight", safetensors.BF16, 64) }, "model.layers.2.input_layernorm.weight"},
		{"stray scales", func(c *checkpoint) { c.add("lm_head.scales", safetensors.BF16, 4) }, "lm_head.scales"},
		{"one tensor under two names", func(c *checkpoint) { c.add("language_model.lm_head.weight", safetensors.BF16, cpVocab, cpHidden) }, "lm_head.weight"},
		{"an expert less", func(c *checkpoint) { c.perExpert(); delete(c.tensors, p+"mlp.experts.2.up_proj.weight") }, p + "mlp.experts.2.up_proj.weight"},
		{"an expert of another type", func(c *checkpoint) {
			c.perExpert()
			c.add(p+"mlp.experts.1.up_proj.weight", safetensors.F32, cpInter, cpHidden)
		}, p + "mlp.experts.1.up_proj.weight"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newCheckpoint(safetensors.BF16)
			c.change(x)
			dst := filepath.Join(t.TempDir(), "pack")
			err := convert.Convert(context.Background(), x.write(t), dst, convert.Options{})
			found := false
			for _, e := range split(err) {
				var bad *convert.SourceError
				found = found || errors.As(e, &bad) && bad.Tensor == c.tensor
			}
			if !found {
				t.Errorf("got %v, want a *SourceError of %q", err, c.tensor)
			}
			gone(t, dst)
			gone(t, dst+".partial")
		})
	}
}

func split(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		return j.Unwrap()
	}
	return []error{err}
}

// Defects of a quantised source.
func TestConvertRefusesCodes(t *testing.T) {
	// codes replaces the head by 4-bit codes, then applies change to the three tensors.
	codes := func(change func(w, s, b *safetensors.Tensor)) *checkpoint {
		c := newCheckpoint(safetensors.BF16)
		w := safetensors.Tensor{Name: "lm_head.weight", DType: safetensors.U32, Shape: []int{cpVocab, 8}, Data: make([]byte, cpVocab*32)}
		s := safetensors.Tensor{Name: "lm_head.scales", DType: safetensors.BF16, Shape: []int{cpVocab, 1}, Data: make([]byte, cpVocab*2)}
		b := s
		b.Name = "lm_head.biases"
		change(&w, &s, &b)
		for _, x := range []safetensors.Tensor{w, s, b} {
			c.tensors[x.Name] = x
		}
		return c
	}
	ok := codes(func(_, _, _ *safetensors.Tensor) {})
	mustConvert(t, ok.write(t), convert.Options{})
	for name, change := range map[string]func(w, s, b *safetensors.Tensor){
		"scales in F16":         func(_, s, _ *safetensors.Tensor) { s.DType = safetensors.F16 },
		"biases of other shape": func(_, _, b *safetensors.Tensor) { b.Shape = []int{1, cpVocab} },
		"scales of other rows":  func(_, s, _ *safetensors.Tensor) { s.Shape = []int{cpVocab / 2, 2} },
		"7-bit codes":           func(w, _, _ *safetensors.Tensor) { w.Shape, w.Data = []int{cpVocab, 14}, make([]byte, cpVocab*56) },
		"groups of 16":          func(_, s, _ *safetensors.Tensor) { s.Shape, s.Data = []int{cpVocab, 4}, make([]byte, cpVocab*8) },
		"rows":                  func(w, _, _ *safetensors.Tensor) { w.Shape = []int{cpVocab * 8, 1} },
	} {
		var bad *convert.SourceError
		err := convert.Convert(context.Background(), codes(change).write(t), filepath.Join(t.TempDir(), "pack"), convert.Options{})
		if !errors.As(err, &bad) || !strings.HasPrefix(bad.Tensor, "lm_head.") {
			t.Errorf("%s: got %v, want a *SourceError of lm_head", name, err)
		}
	}
}

// Layouts must not be mixed: norms would be shifted wrongly.
func TestConvertRefusesMixtures(t *testing.T) {
	c := newCheckpoint(safetensors.BF16)
	c.config["layer_types"] = []string{"linear_attention", "linear_attention"}
	for name, x := range c.tensors {
		if strings.Contains(name, "self_attn") {
			delete(c.tensors, name)
		}
		if rest, ok := strings.CutPrefix(name, "model.layers.0.linear_attn."); ok {
			x.Name = "model.layers.1.linear_attn." + rest
			if strings.HasPrefix(rest, "conv1d") {
				x.Shape = []int{cpConv, 4, 1}
			}
			c.tensors[x.Name] = x
		}
	}
	err := convert.Convert(context.Background(), c.write(t), filepath.Join(t.TempDir(), "pack"), convert.Options{})
	var bad *convert.SourceError
	if !errors.As(err, &bad) || !strings.Contains(bad.Tensor, "conv1d") {
		t.Errorf("two shapes of convolutions: got %v", err)
	}

	c = newCheckpoint(safetensors.BF16)
	c.config["layer_types"] = []string{"full_attention", "full_attention"}
	if err := convert.Convert(context.Background(), c.write(t), filepath.Join(t.TempDir(), "pack"), convert.Options{}); err == nil || !strings.Contains(err.Error(), "convolution") {
		t.Errorf("no convolution: got %v", err)
	}

}

// A number that cannot be quantised stops the conversion with an error that gives its index.
// Everything written is removed.
func TestConvertRefusesNaN(t *testing.T) {
	c := newCheckpoint(safetensors.BF16)
	x := c.tensors["model.layers.1.mlp.experts.down_proj"]
	binary.LittleEndian.PutUint16(x.Data[2*5000:], quant.F32ToBF16(float32(math.NaN())))
	dst := filepath.Join(t.TempDir(), "pack")
	err := convert.Convert(context.Background(), c.write(t), dst, convert.Options{Bits: 4})
	var bad *quant.ValueError
	if !errors.As(err, &bad) || !strings.Contains(err.Error(), "model.layers.1.mlp.experts.down_proj") {
		t.Errorf("got %v, want a *quant.ValueError with the tensor's name", err)
	}
	var write *convert.WriteError
	if errors.As(err, &write) {
		t.Errorf("got %v: the target is blamed for the source", err)
	}
	gone(t, dst)
}

func TestConvertRefusesDirectories(t *testing.T) {
	src := fixtures.Dir(t, fixtures.Qwen35MoEBF16)
	run := func(src, dst string) error {
		return convert.Convert(context.Background(), src, dst, convert.Options{})
	}
	// copied returns a copy of the fixture with one file changed; nil removes it.
	copied := func(name string, content []byte) string {
		dir := t.TempDir()
		for _, f := range []string{"config.json", "model.safetensors"} {
			writeFile(t, filepath.Join(dir, f), readFile(t, filepath.Join(src, f)))
		}
		if content == nil {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		} else {
			writeFile(t, filepath.Join(dir, name), content)
		}
		return dir
	}
	shards := readFile(t, filepath.Join(src, "model.safetensors"))
	for _, c := range []struct {
		name string
		src  string
		ok   func(error) bool
	}{
		{"no source", filepath.Join(t.TempDir(), "none"), func(e error) bool { return errors.Is(e, fs.ErrNotExist) }},
		{"no config", copied("config.json", nil), func(e error) bool { return errors.Is(e, fs.ErrNotExist) }},
		{"no tensors", copied("model.safetensors", nil), func(e error) bool { return errors.Is(e, fs.ErrNotExist) }},
		{"unknown architecture", copied("config.json", []byte(`{"model_type":"llama"}`)), is[*model.UnknownArchError]},
		{"impossible config", copied("config.json", []byte(`{"model_type":"qwen3_5_moe"}`)), is[*model.ConfigError]},
		{"broken generation_config", copied("generation_config.json", []byte(`[]`)), is[*model.ConfigError]},
		{"truncated tensors", copied("model.safetensors", shards[:len(shards)-1]), is[*safetensors.FormatError]},
		{"oversized tensors", copied("model.safetensors", append(shards[:len(shards):len(shards)], 0)), is[*safetensors.FormatError]},
		{"half a header", copied("model.safetensors", shards[:100]), is[*safetensors.FormatError]},
		{"missing shard", copied("model.safetensors.index.json", []byte(`{"weight_map":{"a":"none.safetensors"}}`)), is[*safetensors.FormatError]},
	} {
		dst := filepath.Join(t.TempDir(), "pack")
		if err := run(c.src, dst); err == nil || !c.ok(err) {
			t.Errorf("%s: got %v", c.name, err)
		}
		gone(t, dst)
		gone(t, dst+".partial")
	}
	if err := convert.Convert(context.Background(), src, filepath.Join(t.TempDir(), "x"), convert.Options{Bits: 5}); err == nil {
		t.Error("5 bits: no error")
	}
}

func is[E error](err error) bool {
	var want E
	return errors.As(err, &want)
}

// An existing target is not touched, unless it is an empty directory.
func TestConvertExisting(t *testing.T) {
	src := fixtures.Dir(t, fixtures.Qwen35MoEBF16)
	ctx := context.Background()
	dir := t.TempDir()
	full := filepath.Join(dir, "full")
	if err := os.Mkdir(full, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(full, "mine"), []byte("x"))
	writeFile(t, filepath.Join(dir, "file"), []byte("x"))
	done := mustConvert(t, src, convert.Options{})
	for _, dst := range []string{full, filepath.Join(dir, "file"), done} {
		before := tree(t, dir)
		if err := convert.Convert(ctx, src, dst, convert.Options{}); !is[*convert.ExistsError](err) {
			t.Errorf("%s: got %v, want an *ExistsError", dst, err)
		}
		gone(t, dst+".partial")
		if after := tree(t, dir); len(after) != len(before) {
			t.Errorf("%s: files %v became %v", dst, before, after)
		}
	}
	empty := filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(empty, link); err != nil {
		t.Fatal(err)
	}
	if err := convert.Convert(ctx, src, link, convert.Options{}); err != nil {
		t.Errorf("a link to an empty directory: %v", err)
	}
	sameTree(t, empty, done)
	if target, err := os.Readlink(link); err != nil || target != empty {
		t.Errorf("the link became %q, %v", target, err)
	}
	// A directory with that name that the converter did not create.
	other := filepath.Join(dir, "other")
	if err := os.Mkdir(other+".partial", 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(other+".partial", "mine"), []byte("x"))
	if err := convert.Convert(ctx, src, other, convert.Options{}); !is[*convert.ExistsError](err) {
		t.Errorf("a stranger's %s.partial: got %v, want an *ExistsError", other, err)
	}
	if string(readFile(t, filepath.Join(other+".partial", "mine"))) != "x" {
		t.Error("a stranger's file was touched")
	}
}
