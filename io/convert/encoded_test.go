package convert_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// Sizes of the tiny checkpoints below. 192 and 320 leave part of a tile of 128 at the edge.
const (
	exHidden, exInter, exDense, exExperts, exVocab = 192, 64, 320, 4, 40
	exHeads, exKV, exHeadDim                       = 4, 2, 32
	exRank, exNope, exRope, exValue                = 64, 32, 16, 24
)

// newFamily returns a checkpoint without layers.
func newFamily(modelType string, layers int, config map[string]any) *checkpoint {
	c := newCheckpoint(safetensors.BF16)
	clear(c.tensors)
	c.config = map[string]any{"model_type": modelType, "hidden_size": exHidden, "num_hidden_layers": layers, "vocab_size": exVocab,
		"max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "num_attention_heads": exHeads, "rope_theta": 1e4, "num_experts_per_tok": 2}
	for k, v := range config {
		c.config[k] = v
	}
	const d = safetensors.BF16
	c.add("model.embed_tokens.weight", d, exVocab, exHidden)
	c.add("lm_head.weight", d, exVocab, exHidden)
	c.add("model.norm.weight", d, exHidden)
	for i := range layers {
		c.add(fmt.Sprintf("model.layers.%d.input_layernorm.weight", i), d, exHidden)
		c.add(fmt.Sprintf("model.layers.%d.post_attention_layernorm.weight", i), d, exHidden)
	}
	return c
}

// swiglu adds gate, up and down projections.
func (c *checkpoint) swiglu(prefix string, width int, names ...string) {
	const d = safetensors.BF16
	c.add(prefix+names[0]+".weight", d, width, exHidden)
	c.add(prefix+names[1]+".weight", d, width, exHidden)
	c.add(prefix+names[2]+".weight", d, exHidden, width)
}

func (c *checkpoint) experts(prefix string, names ...string) {
	for e := range exExperts {
		c.swiglu(fmt.Sprintf("%sexperts.%d.", prefix, e), exInter, names...)
	}
}

var usual = []string{"gate_proj", "up_proj", "down_proj"}

// newDeepseek returns a checkpoint of latent attention, one dense layer and one with experts.
func newDeepseek(modelType string) *checkpoint {
	c := newFamily(modelType, 2, map[string]any{"kv_lora_rank": exRank, "q_lora_rank": nil, "qk_nope_head_dim": exNope, "qk_rope_head_dim": exRope,
		"v_head_dim": exValue, "first_k_dense_replace": 1, "intermediate_size": exDense, "moe_intermediate_size": exInter, "n_routed_experts": exExperts,
		"n_shared_experts": 2, "n_group": 1, "topk_group": 1, "routed_scaling_factor": 2.5})
	const d = safetensors.BF16
	for i := range 2 {
		p := fmt.Sprintf("model.layers.%d.self_attn.", i)
		c.add(p+"q_proj.weight", d, exHeads*(exNope+exRope), exHidden)
		c.add(p+"kv_a_proj_with_mqa.weight", d, exRank+exRope, exHidden)
		c.add(p+"kv_a_layernorm.weight", d, exRank)
		c.add(p+"kv_b_proj.weight", d, exHeads*(exNope+exValue), exRank)
		c.add(p+"o_proj.weight", d, exHidden, exHeads*exValue)
		c.add(p+"rotary_emb.inv_freq", safetensors.F32, exRope/2)
	}
	c.swiglu("model.layers.0.mlp.", exDense, usual...)
	c.add("model.layers.1.mlp.gate.weight", d, exExperts, exHidden)
	c.add("model.layers.1.mlp.gate.e_score_correction_bias", d, exExperts)
	c.swiglu("model.layers.1.mlp.shared_experts.", 2*exInter, usual...)
	c.experts("model.layers.1.mlp.", usual...)
	return c
}

// newSoftmax returns a checkpoint of softmax attention with norms of queries and keys of lengths q
// and k.
func newSoftmax(modelType string, layers int, q, k int, config map[string]any) *checkpoint {
	c := newFamily(modelType, layers, config)
	c.config["num_key_value_heads"], c.config["head_dim"] = exKV, exHeadDim
	const d = safetensors.BF16
	for i := range layers {
		p := fmt.Sprintf("model.layers.%d.self_attn.", i)
		c.add(p+"q_proj.weight", d, exHeads*exHeadDim, exHidden)
		c.add(p+"k_proj.weight", d, exKV*exHeadDim, exHidden)
		c.add(p+"v_proj.weight", d, exKV*exHeadDim, exHidden)
		c.add(p+"o_proj.weight", d, exHidden, exHeads*exHeadDim)
		c.add(p+"q_norm.weight", d, q)
		c.add(p+"k_norm.weight", d, k)
	}
	return c
}

func newGlm() *checkpoint {
	c := newSoftmax("glm4_moe", 2, exHeadDim, exHeadDim, map[string]any{"use_qk_norm": true, "attention_bias": true, "first_k_dense_replace": 1,
		"intermediate_size": exDense, "moe_intermediate_size": exInter, "n_routed_experts": exExperts, "n_shared_experts": 1, "n_group": 1, "topk_group": 1,
		"routed_scaling_factor": 1.0})
	for i := range 2 {
		p := fmt.Sprintf("model.layers.%d.self_attn.", i)
		c.add(p+"q_proj.bias", safetensors.BF16, exHeads*exHeadDim)
		c.add(p+"k_proj.bias", safetensors.BF16, exKV*exHeadDim)
		c.add(p+"v_proj.bias", safetensors.BF16, exKV*exHeadDim)
	}
	c.swiglu("model.layers.0.mlp.", exDense, usual...)
	c.add("model.layers.1.mlp.gate.weight", safetensors.F32, exExperts, exHidden)
	c.add("model.layers.1.mlp.gate.e_score_correction_bias", safetensors.F32, exExperts)
	c.swiglu("model.layers.1.mlp.shared_experts.", exInter, usual...)
	c.experts("model.layers.1.mlp.", usual...)
	return c
}

func newMiniMax() *checkpoint {
	c := newSoftmax("minimax_m2", 1, exHeads*exHeadDim, exKV*exHeadDim, map[string]any{"rotary_dim": 16, "num_local_experts": exExperts, "intermediate_size": exInter})
	const p = "model.layers.0.block_sparse_moe."
	c.add(p+"gate.weight", safetensors.F32, exExperts, exHidden)
	c.add(p+"e_score_correction_bias", safetensors.F32, exExperts)
	c.experts(p, "w1", "w3", "w2")
	return c
}

// tile stores a matrix as 8-bit floats with a scale for each tile, and returns its numbers: exact
// products, rounded to float32.
func (c *checkpoint) tile(name string) []float32 {
	x := c.tensors[name]
	rows, cols := x.Shape[0], x.Shape[1]
	x.DType, x.Data = safetensors.F8E4M3, make([]byte, rows*cols)
	for i := range x.Data {
		x.Data[i] = byte(c.rng.IntN(256))
		if x.Data[i]&0x7f == 0x7f { // no NaN
			x.Data[i] ^= 1
		}
	}
	c.tensors[name] = x
	scale := strings.TrimSuffix(name, "weight") + "weight_scale_inv"
	across := (cols + 127) / 128
	c.add(scale, safetensors.F32, (rows+127)/128, across)
	s := c.tensors[scale].Data
	for i := range len(s) / 4 { // not powers of two, of both signs
		binary.LittleEndian.PutUint32(s[4*i:], math.Float32bits(float32(c.rng.NormFloat64()/300)))
	}
	out := make([]float32, rows*cols)
	for i := range out {
		b := x.Data[i]
		v := math.Ldexp(float64(8|b&7), int(b>>3&15)-10)
		if b>>3&15 == 0 {
			v = math.Ldexp(float64(b&7), -9)
		}
		if b > 0x7f {
			v = -v
		}
		t := i/cols/128*across + i%cols/128
		out[i] = float32(v * float64(math.Float32frombits(binary.LittleEndian.Uint32(s[4*t:]))))
	}
	return out
}

// 8-bit floats with block scales stay what they are in groups of 32 or 128, become float32 where
// there are no such groups, or codes of their numbers; tiles at the edges are partial.
func TestConvertTiles(t *testing.T) {
	c := newMiniMax()
	want := map[string][]float32{}
	for name := range c.tensors {
		if strings.HasSuffix(name, "_proj.weight") || strings.Contains(name, ".experts.") {
			want[name] = nil
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		want[name] = c.tile(name)
	}
	c.config["quantization_config"] = map[string]any{"quant_method": "fp8", "weight_block_size": []int{128, 128}}
	dir := c.write(t)
	for _, o := range []convert.Options{{}, {Bits: 4}, {ExpertBits: 2}} {
		p := openPack(t, mustConvert(t, dir, o))
		compare := func(what string, f quant.Format, cols int, x []float32, w, s, b []byte) {
			t.Helper()
			if !f.Affine() {
				for i, got := range unpack(f, len(x)/cols, cols, w, s, b) {
					if got != x[i] {
						t.Errorf("%+v: %s[%d] as %v: got %v, want %v", o, what, i, f, got, x[i])
						return
					}
				}
				return
			}
			codes, scales, biases := make([]byte, len(w)), make([]byte, len(s)), make([]byte, len(b))
			if err := f.Quantize(codes, scales, biases, x); err != nil {
				t.Fatal(err)
			}
			sameBytes(t, what+" codes", w, codes)
			sameBytes(t, what+" scales", s, scales)
			sameBytes(t, what+" biases", b, biases)
		}
		formats := map[string]int{}
		for name, x := range want {
			if strings.Contains(name, ".experts.") {
				continue
			}
			cols := c.tensors[name].Shape[1]
			f, w, s, b := p.matrix(strings.TrimSuffix(name, ".weight"), len(x)/cols, cols)
			formats[f.String()]++
			compare(name, f, cols, x, w, s, b)
		}
		for e := range exExperts {
			r := p.record(0, e)
			for name, part := range map[string]model.ExpertPart{"w1": p.layout().Gate, "w3": p.layout().Up, "w2": p.layout().Down} {
				w, s, b := parts(r, part)
				compare(name, part.Format, part.Cols, want[fmt.Sprintf("model.layers.0.block_sparse_moe.experts.%d.%s.weight", e, name)], w, s, b)
			}
		}
		dense, experts := map[string]int{"fp8g128": 1, "fp8g32": 3}, "fp8g32"
		if o.Bits > 0 {
			dense, experts = map[string]int{"q4g64": 4}, "q4g64"
		}
		if o.ExpertBits > 0 {
			experts = "q2g64"
		}
		if !maps.Equal(formats, dense) || p.layout().Up.Format.String() != experts {
			t.Errorf("%+v: formats %v, experts %v; want %v and %s", o, formats, p.layout().Up.Format, dense, experts)
		}
	}
}

// minimax_m2 gets the names of the other families in the pack. Its router and correction bias are
// not quantised.
func TestConvertMiniMax(t *testing.T) {
	c := newMiniMax()
	c.add("model.mtp.0.norm.weight", safetensors.BF16, 3)
	dir := c.write(t)
	src := source(t, dir)
	for _, bits := range []int{0, 4} {
		p := openPack(t, mustConvert(t, dir, convert.Options{Bits: bits}))
		f, w, _, _ := p.matrix("model.layers.0.mlp.gate", exExperts, exHidden)
		if f != quant.F32 {
			t.Errorf("the router is %v, want f32", f)
		}
		sameBytes(t, "router", w, src("model.layers.0.block_sparse_moe.gate.weight").Data)
		bias, err := p.w.Vector("model.layers.0.mlp.gate.e_score_correction_bias", exExperts)
		if err != nil || !slices.Equal(bias, floats(t, src("model.layers.0.block_sparse_moe.e_score_correction_bias"))) {
			t.Errorf("correction bias %v, %v", bias, err)
		}
		for name, n := range map[string]int{"q_norm": exHeads * exHeadDim, "k_norm": exKV * exHeadDim} {
			name = "model.layers.0.self_attn." + name + ".weight"
			if got, err := p.w.Vector(name, n); err != nil || !slices.Equal(got, floats(t, src(name))) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if bits > 0 {
			continue
		}
		for e := range exExperts {
			at := fmt.Sprintf("model.layers.0.block_sparse_moe.experts.%d.", e)
			sameBytes(t, "expert", p.record(0, e), slices.Concat(src(at+"w1.weight").Data, src(at+"w3.weight").Data, src(at+"w2.weight").Data))
		}
	}
}

// glm4_moe has biases, and a layer after the last that is dropped.
func TestConvertGlm(t *testing.T) {
	c := newGlm()
	for _, name := range []string{"eh_proj.weight", "enorm.weight", "shared_head.head.weight", "self_attn.q_proj.weight", "mlp.experts.0.up_proj.weight"} {
		c.add("model.layers.2."+name, safetensors.BF16, 3, 5)
	}
	dir := c.write(t)
	src := source(t, dir)
	p := openPack(t, mustConvert(t, dir, convert.Options{Bits: 4}))
	for name, n := range map[string]int{"q_proj.bias": exHeads * exHeadDim, "k_proj.bias": exKV * exHeadDim, "v_proj.bias": exKV * exHeadDim, "q_norm.weight": exHeadDim} {
		name = "model.layers.1.self_attn." + name
		if got, err := p.w.Vector(name, n); err != nil || !slices.Equal(got, floats(t, src(name))) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if f, _, _, _ := p.matrix("model.layers.0.mlp.gate_proj", exDense, exHidden); f.String() != "q4g64" {
		t.Errorf("the dense layer is %v, want q4g64", f)
	}
	for _, name := range p.w.Names() {
		if strings.HasPrefix(name, "model.layers.2.") {
			t.Errorf("%s is in the pack", name)
		}
	}
	c.config["use_qk_norm"], c.config["attention_bias"] = false, false
	for name := range c.tensors {
		if strings.HasSuffix(name, ".bias") || strings.HasSuffix(name, "_norm.weight") && strings.Contains(name, "self_attn") {
			delete(c.tensors, name)
		}
	}
	if p := openPack(t, mustConvert(t, c.write(t), convert.Options{})); p.w.Has("model.layers.0.self_attn.q_norm.weight") {
		t.Error("a norm from nowhere")
	}
}

// packInt4 stores an expert's matrix as compressed-tensors do and returns its numbers.
func (c *checkpoint) packInt4(name string) []float32 {
	x := c.tensors[name+".weight"]
	delete(c.tensors, x.Name)
	rows, cols := x.Shape[0], x.Shape[1]
	c.add(name+".weight_scale", safetensors.BF16, rows, cols/32)
	scales := floatsOf(c.tensors[name+".weight_scale"])
	packed := safetensors.Tensor{Name: name + ".weight_packed", DType: safetensors.I32, Shape: []int{rows, cols / 8}, Data: make([]byte, rows*cols/2)}
	out := make([]float32, rows*cols)
	for w := range rows * cols / 8 {
		word := c.rng.Uint32()
		binary.LittleEndian.PutUint32(packed.Data[4*w:], word)
		for j := range 8 {
			e := 8*w + j
			out[e] = (float32(word>>(4*j)&15) - 8) * scales[e/32]
		}
	}
	c.tensors[packed.Name] = packed
	shape := safetensors.Tensor{Name: name + ".weight_shape", DType: "I64", Shape: []int{2}, Data: make([]byte, 16)}
	binary.LittleEndian.PutUint64(shape.Data, uint64(rows))
	binary.LittleEndian.PutUint64(shape.Data[8:], uint64(cols))
	c.tensors[shape.Name] = shape
	return out
}

func floatsOf(x safetensors.Tensor) []float32 {
	out := make([]float32, x.Elements())
	if err := x.Floats(out, 0); err != nil {
		panic(err)
	}
	return out
}

// newKimi returns a checkpoint whose experts are packed as int4, under the names of a wrapped
// model, and their numbers.
func newKimi() (*checkpoint, map[string][]float32) {
	c := newDeepseek("kimi_k2")
	want := map[string][]float32{}
	for e := range exExperts {
		for _, name := range usual {
			name = fmt.Sprintf("model.layers.1.mlp.experts.%d.%s", e, name)
			want[name] = c.packInt4(name)
		}
	}
	return c, want
}

// int4 of compressed-tensors keeps its codes, with biases of -8 scales. For two bits it is widened
// first.
func TestConvertInt4(t *testing.T) {
	c, want := newKimi()
	c.config = map[string]any{"model_type": "kimi_k25", "text_config": c.config, "quantization_config": map[string]any{"quant_method": "compressed-tensors", "format": "pack-quantized"}}
	for _, name := range slices.Sorted(maps.Keys(c.tensors)) {
		c.rename(name, "language_model."+name)
	}
	c.add("vision_tower.x.weight", safetensors.BF16, 2)
	c.add("mm_projector.proj.0.weight", safetensors.BF16, 2)
	dir := c.write(t)
	for bits, format := range map[int]string{0: "q4g32", 2: "q2g32", 8: "q4g32"} {
		p := openPack(t, mustConvert(t, dir, convert.Options{ExpertBits: bits}))
		l := p.layout()
		if l.Gate.Format.String() != format {
			t.Errorf("%d bits: experts are %v, want %s", bits, l.Gate.Format, format)
		}
		for e := range exExperts {
			r := p.record(1, e)
			for i, part := range []model.ExpertPart{l.Gate, l.Up, l.Down} {
				x := want[fmt.Sprintf("model.layers.1.mlp.experts.%d.%s", e, usual[i])]
				w, s, b := parts(r, part)
				if bits == 2 {
					codes, scales, biases := make([]byte, len(w)), make([]byte, len(s)), make([]byte, len(b))
					if err := part.Format.Quantize(codes, scales, biases, x); err != nil {
						t.Fatal(err)
					}
					sameBytes(t, "codes", w, codes)
					sameBytes(t, "scales", s, scales)
					sameBytes(t, "biases", b, biases)
				} else if got := unpack(part.Format, part.Rows, part.Cols, w, s, b); !slices.Equal(got, x) {
					t.Errorf("%d bits: expert %d %s differs", bits, e, usual[i])
				}
			}
		}
		if f, _, _, _ := p.matrix("model.layers.1.self_attn.kv_b_proj", exHeads*(exNope+exValue), exRank); f != quant.BF16 {
			t.Errorf("kv_b_proj is %v, want bf16", f)
		}
	}
}

// deepseek_v3 with one q_proj and a layer after the last, which is dropped. A bf16 correction bias
// stays bf16.
func TestConvertDeepseek(t *testing.T) {
	c := newDeepseek("deepseek_v3")
	c.add("model.layers.2.eh_proj.weight", safetensors.BF16, 3, 5)
	c.add("model.layers.2.mlp.experts.0.up_proj.weight", safetensors.BF16, 3, 5)
	dir := mustConvert(t, c.write(t), convert.Options{Bits: 8})
	p := openPack(t, dir)
	for name, shape := range map[string][2]int{"self_attn.q_proj": {exHeads * (exNope + exRope), exHidden}, "mlp.shared_experts.down_proj": {exHidden, 2 * exInter}} {
		if f, _, _, _ := p.matrix("model.layers.1."+name, shape[0], shape[1]); f.String() != "q8g64" {
			t.Errorf("%s is %v, want q8g64", name, f)
		}
	}
	if d := readManifest(t, dir).Tensors["model.layers.1.mlp.gate.e_score_correction_bias"]; d.DType != safetensors.BF16 {
		t.Errorf("the correction bias is %s, want BF16", d.DType)
	}
	for _, name := range p.w.Names() {
		if strings.HasPrefix(name, "model.layers.2.") || strings.Contains(name, "inv_freq") {
			t.Errorf("%s is in the pack", name)
		}
	}
}

// Every defect of these forms is an error that names the tensor.
func TestConvertRefusesForms(t *testing.T) {
	const moe = "model.layers.1.mlp."
	up := moe + "experts.2.up_proj"
	drop := func(name string) func(*checkpoint) { return func(c *checkpoint) { delete(c.tensors, name) } }
	kimi := func() *checkpoint { c, _ := newKimi(); return c }
	deepseek := func() *checkpoint { return newDeepseek("deepseek_v3") }
	tiled := func() *checkpoint {
		c := deepseek()
		for e := range exExperts {
			for _, name := range usual {
				c.tile(fmt.Sprintf("%sexperts.%d.%s.weight", moe, e, name))
			}
		}
		return c
	}
	for _, c := range []struct {
		name   string
		from   func() *checkpoint
		change func(*checkpoint)
		tensor string
	}{
		{"fp8 without scales", tiled, drop(up + ".weight_scale_inv"), up + ".weight"},
		{"fp8 with scales of other tiles", tiled, func(c *checkpoint) { c.add(up+".weight_scale_inv", safetensors.F32, 1, 1) }, up + ".weight_scale_inv"},
		{"fp8 with scales of integers", tiled, func(c *checkpoint) {
			x := c.tensors[up+".weight_scale_inv"]
			x.DType = safetensors.I32
			c.tensors[x.Name] = x
		}, up + ".weight_scale_inv"},
		{"fp8 in one expert alone", deepseek, func(c *checkpoint) { c.tile(up + ".weight") }, up + ".weight"},
		{"scales of what is no fp8", deepseek, func(c *checkpoint) { c.add(up+".weight_scale_inv", safetensors.F32, 1, 2) }, up + ".weight_scale_inv"},
		{"int4 without scales", kimi, drop(up + ".weight_scale"), up + ".weight_packed"},
		{"int4 without its shape", kimi, drop(up + ".weight_shape"), up + ".weight_shape"},
		{"int4 of another shape", kimi, func(c *checkpoint) { c.tensors[up+".weight_shape"].Data[0]++ }, up + ".weight_shape"},
		{"int4 with zero points", kimi, func(c *checkpoint) { c.add(up+".weight_zero_point", safetensors.BF16, 4) }, up + ".weight_zero_point"},
		{"int4 beside numbers", kimi, func(c *checkpoint) { c.add(up+".weight", safetensors.BF16, exInter, exHidden) }, up + ".weight"},
		{"half of the split form", deepseek, func(c *checkpoint) {
			c.rename("model.layers.0.self_attn.kv_b_proj.weight", "model.layers.0.self_attn.embed_q.weight")
		}, "model.layers.0.self_attn.embed_q.weight"},
		{"both forms", deepseek, func(c *checkpoint) {
			c.add("model.layers.0.self_attn.embed_q.weight", safetensors.BF16, exHeads, exRank, exNope)
			c.add("model.layers.0.self_attn.unembed_out.weight", safetensors.BF16, exHeads, exValue, exRank)
		}, "model.layers.0.self_attn.kv_b_proj.weight"},
		{"no correction bias", deepseek, drop(moe + "gate.e_score_correction_bias"), moe + "gate.e_score_correction_bias"},
		{"no shared expert", deepseek, drop(moe + "shared_experts.up_proj.weight"), moe + "shared_experts.up_proj.weight"},
		{"a dense layer with a router", deepseek, func(c *checkpoint) { c.add("model.layers.0.mlp.gate.weight", safetensors.BF16, 4, 4) }, "model.layers.0.mlp.gate.weight"},
		{"a layer more that predicts nothing", deepseek, func(c *checkpoint) { c.add("model.layers.2.input_layernorm.weight", safetensors.BF16, 4) }, "model.layers.2.input_layernorm.weight"},
		{"no bias", newGlm, drop("model.layers.0.self_attn.v_proj.bias"), "model.layers.0.self_attn.v_proj.bias"},
		{"a norm per head", newMiniMax, func(c *checkpoint) { c.add("model.layers.0.self_attn.q_norm.weight", safetensors.BF16, exHeadDim) }, "model.layers.0.self_attn.q_norm.weight"},
		{"an expert without w2", newMiniMax, drop("model.layers.0.block_sparse_moe.experts.1.w2.weight"), "model.layers.0.mlp.experts.1.down_proj.weight"},
	} {
		x := c.from()
		mustConvert(t, x.write(t), convert.Options{})
		c.change(x)
		dst := filepath.Join(t.TempDir(), "pack")
		err := convert.Convert(context.Background(), x.write(t), dst, convert.Options{})
		found := false
		for _, e := range split(err) {
			var bad *convert.SourceError
			found = found || errors.As(e, &bad) && bad.Tensor == c.tensor
		}
		if !found {
			t.Errorf("%s: got %v, want a *SourceError of %q", c.name, err, c.tensor)
		}
		gone(t, dst)
	}
}

// The error for a number that cannot be quantised gives its index in the source.
func TestConvertTilesNaN(t *testing.T) {
	c := newDeepseek("deepseek_v3")
	const name = "model.layers.0.self_attn.q_proj.weight"
	c.tile(name)
	c.tensors[name].Data[1000] = 0x7f
	err := convert.Convert(context.Background(), c.write(t), filepath.Join(t.TempDir(), "pack"), convert.Options{Bits: 4})
	var bad *quant.ValueError
	if !errors.As(err, &bad) || bad.Index != 1000 || !strings.Contains(err.Error(), name) {
		t.Errorf("got %v, want element 1000 of %s", err, name)
	}
}
