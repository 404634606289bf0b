package convert_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/durable"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
)

func mustConvert(t testing.TB, src string, o convert.Options) string {
	t.Helper()
	dst := filepath.Join(t.TempDir(), "pack")
	if err := convert.Convert(context.Background(), src, dst, unsafely(o)); err != nil {
		t.Fatalf("Convert: %v", err)
	}
	return dst
}

// unsafely writes files without waiting for the disk, which makes tests that convert often several
// times faster.
func unsafely(o convert.Options) convert.Options {
	return o.WithFiles(lazy{})
}

type lazy struct{ durable.OS }

func (l lazy) Create(path string, perm fs.FileMode) (durable.File, error) {
	f, err := l.OS.Create(path, perm)
	return lazyFile{f}, err
}

func (l lazy) Edit(path string, perm fs.FileMode) (durable.Edited, error) {
	f, err := l.OS.Edit(path, perm)
	return lazyEdited{f}, err
}

func (lazy) SyncDir(string) error { return nil }

type lazyEdited struct{ durable.Edited }

func (lazyEdited) Sync() error { return nil }

type lazyFile struct{ durable.File }

func (lazyFile) Sync() error { return nil }

func config(t testing.TB, dir string) *model.Config {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := model.ParseConfig(raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// source opens a checkpoint until the test ends and returns a look-up that fails the test.
func source(t testing.TB, dir string) func(name string) safetensors.Tensor {
	t.Helper()
	c, err := safetensors.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return func(name string) safetensors.Tensor {
		t.Helper()
		x, ok := c.Tensor(name)
		if !ok {
			t.Fatalf("the source has no tensor %q", name)
		}
		return x
	}
}

func floats(t testing.TB, x safetensors.Tensor) []float32 {
	t.Helper()
	out := make([]float32, x.Elements())
	if err := x.Floats(out, 0); err != nil {
		t.Fatal(err)
	}
	return out
}

// tree returns all files under dir by relative path.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[rel] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func sameTree(t *testing.T, got, want string) {
	t.Helper()
	g, w := tree(t, got), tree(t, want)
	for _, name := range slices.Sorted(maps.Keys(w)) {
		if content, ok := g[name]; !ok || content != w[name] {
			t.Errorf("%s: there: %v, %d bytes, want the %d bytes of the other conversion", name, ok, len(content), len(w[name]))
		}
		delete(g, name)
	}
	for name := range g {
		t.Errorf("%s should not be there", name)
	}
}

func gone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); err == nil {
		t.Errorf("%s is there", path)
	}
}

// checkpoint is a tiny checkpoint in memory, to be changed before it is written: two layers, one of
// each mixer.
type checkpoint struct {
	config  map[string]any
	tensors map[string]safetensors.Tensor
	rng     *rand.Rand
}

const (
	cpHidden, cpInter, cpExperts, cpVocab = 64, 64, 3, 40
	cpConv                                = 2*16 + 32
)

// newCheckpoint returns one in the Hugging Face layout with numbers of type d.
func newCheckpoint(d safetensors.DType) *checkpoint {
	c := &checkpoint{rng: rand.New(rand.NewPCG(7, 7)), tensors: map[string]safetensors.Tensor{}, config: map[string]any{
		"model_type": "qwen3_5_moe", "hidden_size": cpHidden, "num_hidden_layers": 2, "vocab_size": cpVocab, "max_position_embeddings": 4096,
		"rms_norm_eps": 1e-6, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "rope_theta": 1e7, "partial_rotary_factor": 0.5,
		"linear_num_key_heads": 1, "linear_num_value_heads": 2, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
		"linear_conv_kernel_dim": 4, "num_experts": cpExperts, "num_experts_per_tok": 2, "moe_intermediate_size": cpInter,
		"shared_expert_intermediate_size": cpInter, "full_attention_interval": 2,
	}}
	const h = cpHidden
	c.add("model.embed_tokens.weight", d, cpVocab, h)
	c.add("lm_head.weight", d, cpVocab, h)
	c.add("model.norm.weight", d, h)
	for i, p := range []string{"model.layers.0.", "model.layers.1."} {
		c.add(p+"input_layernorm.weight", d, h)
		c.add(p+"post_attention_layernorm.weight", d, h)
		c.add(p+"mlp.gate.weight", d, cpExperts, h)
		c.add(p+"mlp.shared_expert_gate.weight", d, 1, h)
		c.add(p+"mlp.shared_expert.gate_proj.weight", d, cpInter, h)
		c.add(p+"mlp.shared_expert.up_proj.weight", d, cpInter, h)
		c.add(p+"mlp.shared_expert.down_proj.weight", d, h, cpInter)
		c.add(p+"mlp.experts.gate_up_proj", d, cpExperts, 2*cpInter, h)
		c.add(p+"mlp.experts.down_proj", d, cpExperts, h, cpInter)
		if i == 0 {
			c.add(p+"linear_attn.in_proj_qkv.weight", d, cpConv, h)
			c.add(p+"linear_attn.in_proj_z.weight", d, 32, h)
			c.add(p+"linear_attn.in_proj_a.weight", d, 2, h)
			c.add(p+"linear_attn.in_proj_b.weight", d, 2, h)
			c.add(p+"linear_attn.conv1d.weight", d, cpConv, 1, 4)
			c.add(p+"linear_attn.A_log", d, 2)
			c.add(p+"linear_attn.dt_bias", d, 2)
			c.add(p+"linear_attn.norm.weight", d, 16)
			c.add(p+"linear_attn.out_proj.weight", d, h, 32)
		} else {
			c.add(p+"self_attn.q_proj.weight", d, 64, h)
			c.add(p+"self_attn.k_proj.weight", d, 16, h)
			c.add(p+"self_attn.v_proj.weight", d, 16, h)
			c.add(p+"self_attn.o_proj.weight", d, h, 32)
			c.add(p+"self_attn.q_norm.weight", d, 16)
			c.add(p+"self_attn.k_norm.weight", d, 16)
		}
	}
	return c
}

// add makes a tensor of random numbers that d holds exactly.
func (c *checkpoint) add(name string, d safetensors.DType, shape ...int) {
	n := 1
	for _, s := range shape {
		n *= s
	}
	var data []byte
	for range n {
		v := float32(c.rng.IntN(511)-255) / 128 // 8 bits: exact in every type
		switch d {
		case safetensors.F32:
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		case safetensors.F16:
			data = binary.LittleEndian.AppendUint16(data, half(v))
		default:
			data = binary.LittleEndian.AppendUint16(data, quant.F32ToBF16(v))
		}
	}
	c.tensors[name] = safetensors.Tensor{Name: name, DType: d, Shape: shape, Data: data}
}

// half returns v in half precision. v has few bits and a moderate exponent.
func half(v float32) uint16 {
	if v == 0 {
		return 0
	}
	b := math.Float32bits(v)
	return uint16(b>>16&0x8000) | uint16((b>>23&0xff)-112)<<10 | uint16(b>>13&0x3ff)
}

// rename renames a tensor.
func (c *checkpoint) rename(from, to string) {
	x := c.tensors[from]
	delete(c.tensors, from)
	x.Name = to
	c.tensors[to] = x
}

// write writes the checkpoint to a new directory.
func (c *checkpoint) write(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	raw, err := json.Marshal(c.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), raw, 0o644); err != nil {
		t.Fatal(err)
	}
	var list []safetensors.Tensor
	for _, name := range slices.Sorted(maps.Keys(c.tensors)) {
		list = append(list, c.tensors[name])
	}
	if err := safetensors.WriteFile(filepath.Join(dir, "model.safetensors"), list, nil); err != nil {
		t.Fatal(err)
	}
	return dir
}

// perExpert splits fused experts into one tensor for each expert.
func (c *checkpoint) perExpert() {
	for layer := range 2 {
		p := fmt.Sprintf("model.layers.%d.mlp.experts.", layer)
		fused, down := c.tensors[p+"gate_up_proj"], c.tensors[p+"down_proj"]
		delete(c.tensors, fused.Name)
		delete(c.tensors, down.Name)
		n, m := len(fused.Data)/cpExperts, len(down.Data)/cpExperts
		for e := range cpExperts {
			both := fused.Data[e*n : (e+1)*n]
			for name, x := range map[string]safetensors.Tensor{
				"gate_proj": {DType: fused.DType, Shape: []int{cpInter, cpHidden}, Data: both[:n/2]},
				"up_proj":   {DType: fused.DType, Shape: []int{cpInter, cpHidden}, Data: both[n/2:]},
				"down_proj": {DType: down.DType, Shape: []int{cpHidden, cpInter}, Data: down.Data[e*m : (e+1)*m]},
			} {
				x.Name = fmt.Sprintf("%s%d.%s.weight", p, e, name)
				c.tensors[x.Name] = x
			}
		}
	}
}

// stacked turns fused experts into one stack for each projection, with mlx-lm's names.
func (c *checkpoint) stacked() {
	for layer := range 2 {
		p := fmt.Sprintf("model.layers.%d.mlp.", layer)
		fused := c.tensors[p+"experts.gate_up_proj"]
		delete(c.tensors, fused.Name)
		n := len(fused.Data) / cpExperts
		var gate, up []byte
		for e := range cpExperts {
			gate = append(gate, fused.Data[e*n:e*n+n/2]...)
			up = append(up, fused.Data[e*n+n/2:(e+1)*n]...)
		}
		for name, data := range map[string][]byte{"gate_proj": gate, "up_proj": up} {
			name = p + "switch_mlp." + name + ".weight"
			c.tensors[name] = safetensors.Tensor{Name: name, DType: fused.DType, Shape: []int{cpExperts, cpInter, cpHidden}, Data: data}
		}
		c.rename(p+"experts.down_proj", p+"switch_mlp.down_proj.weight")
	}
}

func sameBytes(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes differ from the %d wanted", what, len(got), len(want))
	}
}
