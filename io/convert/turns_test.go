package convert_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model"
)

// newGptOss returns a checkpoint as gpt-oss stores bf16: inputs first, gate and up in turns,
// biases.
func newGptOss() *checkpoint {
	c := newSoftmax("gpt_oss", 2, exHeadDim, exHeadDim, map[string]any{"num_local_experts": exExperts, "intermediate_size": exInter,
		"layer_types": []string{"full_attention", "full_attention"}, "attention_bias": true})
	for i := range 2 {
		p := fmt.Sprintf("model.layers.%d.", i)
		delete(c.tensors, p+"self_attn.q_norm.weight")
		delete(c.tensors, p+"self_attn.k_norm.weight")
		c.add(p+"self_attn.q_proj.bias", safetensors.BF16, exHeads*exHeadDim)
		c.add(p+"self_attn.k_proj.bias", safetensors.BF16, exKV*exHeadDim)
		c.add(p+"self_attn.v_proj.bias", safetensors.BF16, exKV*exHeadDim)
		c.add(p+"self_attn.o_proj.bias", safetensors.BF16, exHidden)
		c.add(p+"self_attn.sinks", safetensors.BF16, exHeads)
		c.add(p+"mlp.router.weight", safetensors.BF16, exExperts, exHidden)
		c.add(p+"mlp.router.bias", safetensors.BF16, exExperts)
		c.add(p+"mlp.experts.gate_up_proj", safetensors.BF16, exExperts, exHidden, 2*exInter)
		c.add(p+"mlp.experts.gate_up_proj_bias", safetensors.BF16, exExperts, 2*exInter)
		c.add(p+"mlp.experts.down_proj", safetensors.BF16, exExperts, exInter, exHidden)
		c.add(p+"mlp.experts.down_proj_bias", safetensors.BF16, exExperts, exHidden)
	}
	return c
}

// Every number of the experts is where its output and input are, and every bias where its output
// is.
func TestConvertTurns(t *testing.T) {
	c := newGptOss()
	dir := c.write(t)
	for _, o := range []convert.Options{{}, {Bits: 8}} {
		p := openPack(t, mustConvert(t, dir, o))
		layout, tolerance := p.x.Layout(), float32(0)
		if o.Bits != 0 {
			tolerance = 0.02 // of numbers from -2 to 2 in 256 steps
		}
		record := make([]byte, layout.Bytes)
		for layer := range 2 {
			prefix := fmt.Sprintf("model.layers.%d.mlp.", layer)
			all := [2][]float32{c.floats(t, prefix+"experts.gate_up_proj"), c.floats(t, prefix+"experts.down_proj")}
			biases := [2][]float32{c.floats(t, prefix+"experts.gate_up_proj_bias"), c.floats(t, prefix+"experts.down_proj_bias")}
			for i, part := range []model.ExpertPart{layout.Gate, layout.Up, layout.Down} {
				from, step, first := i/2, 2-i/2, i%2 // of rows in the checkpoint
				wide := part.Rows * step
				bias, err := p.w.Vector(prefix+"switch_mlp."+usual[i]+".bias", exExperts*part.Rows)
				if err != nil {
					t.Fatal(err)
				}
				for e := range exExperts {
					if err := p.x.ReadExpert(layer, e, record); err != nil {
						t.Fatal(err)
					}
					w, s, b := parts(record, part)
					got := unpack(part.Format, part.Rows, part.Cols, w, s, b)
					for r := range part.Rows {
						at := r*step + first
						if want := biases[from][e*wide+at]; bias[e*part.Rows+r] != want {
							t.Fatalf("%+v: bias %d of expert %d, %s: got %v, want %v", o, r, e, usual[i], bias[e*part.Rows+r], want)
						}
						for col := range part.Cols {
							v, want := got[r*part.Cols+col], all[from][(e*part.Cols+col)*wide+at]
							if d := v - want; d > tolerance || d < -tolerance {
								t.Fatalf("%+v: layer %d expert %d %s [%d, %d]: got %v, want %v", o, layer, e, usual[i], r, col, v, want)
							}
						}
					}
				}
			}
		}
	}
}

// floats returns a tensor's numbers.
func (c *checkpoint) floats(t *testing.T, name string) []float32 {
	t.Helper()
	x := c.tensors[name]
	out := make([]float32, x.Elements())
	if err := x.Floats(out, 0); err != nil {
		t.Fatal(err)
	}
	return out
}

// As mlx-lm stores them, gate and up are tensors of their own, outputs first. The numbers are the
// same, and so are the packs.
func TestConvertTurnsOfMLX(t *testing.T) {
	c := newGptOss()
	want := mustConvert(t, c.write(t), convert.Options{})
	for layer := range 2 {
		p := fmt.Sprintf("model.layers.%d.mlp.experts.", layer)
		both, down := c.tensors[p+"gate_up_proj"], c.tensors[p+"down_proj"]
		bias := c.tensors[p+"gate_up_proj_bias"]
		c.rename(p+"down_proj_bias", p+"down_proj.bias")
		for _, name := range []string{"gate_up_proj", "gate_up_proj_bias", "down_proj"} {
			delete(c.tensors, p+name)
		}
		c.turn(p+"gate_proj.weight", both, exInter, 2, 0)
		c.turn(p+"up_proj.weight", both, exInter, 2, 1)
		c.turn(p+"down_proj.weight", down, exHidden, 1, 0)
		for i, name := range usual[:2] {
			x := safetensors.Tensor{Name: p + name + ".bias", DType: safetensors.BF16, Shape: []int{exExperts, exInter}}
			for at := i; at < exExperts*2*exInter; at += 2 {
				x.Data = append(x.Data, bias.Data[2*at:][:2]...)
			}
			c.tensors[x.Name] = x
		}
	}
	got := mustConvert(t, c.write(t), convert.Options{})
	for _, name := range []string{"model_weights.bin", "packed_experts/layer_00.bin", "packed_experts/layer_01.bin"} {
		sameBytes(t, name, readFile(t, filepath.Join(got, name)), readFile(t, filepath.Join(want, name)))
	}
}

// turn adds the rows first, first+step, … of each expert's transpose.
func (c *checkpoint) turn(name string, from safetensors.Tensor, rows, step, first int) {
	cols, wide := from.Shape[1], from.Shape[2]
	x := safetensors.Tensor{Name: name, DType: from.DType, Shape: []int{exExperts, rows, cols}}
	for e := range exExperts {
		for r := range rows {
			for col := range cols {
				x.Data = append(x.Data, from.Data[2*((e*cols+col)*wide+r*step+first):][:2]...)
			}
		}
	}
	c.tensors[name] = x
}
