package convert_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model"
)

// mxfp4Table are what the codes of MXFP4 stand for, by OCP's specification.
var mxfp4Table = [16]float64{0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6}

// newMXFP4 returns a checkpoint whose experts are stored in MXFP4, and the layers' numbers.
func newMXFP4() (*checkpoint, []map[string][]float64) {
	c := newSoftmax("qwen3_moe", 2, exHeadDim, exHeadDim, map[string]any{"num_experts": exExperts, "moe_intermediate_size": exInter,
		"intermediate_size": exDense, "norm_topk_prob": true, "quantization_config": map[string]any{"quant_method": "mxfp4"}})
	var want []map[string][]float64
	for i := range 2 {
		p := fmt.Sprintf("model.layers.%d.mlp.", i)
		c.add(p+"gate.weight", safetensors.BF16, exExperts, exHidden)
		want = append(want, c.mxfp4(p))
	}
	return c, want
}

// mxfp4 stores a layer's experts of random numbers as gpt-oss does. The result has the numbers of a
// row of gates and ups in turns, or of downs: of expert e row r is number e·rows+r.
func (c *checkpoint) mxfp4(prefix string) map[string][]float64 {
	out := map[string][]float64{}
	for _, m := range []struct {
		name       string
		rows, cols int
	}{{"gate_up_proj", 2 * exInter, exHidden}, {"down_proj", exHidden, exInter}} {
		n := exExperts * m.rows * m.cols
		blocks, scales := make([]byte, n/2), make([]byte, n/32)
		for i := range blocks {
			blocks[i] = byte(c.rng.Uint32())
		}
		for i := range scales {
			scales[i] = byte(c.rng.IntN(255))
		}
		scales[0], scales[1] = 0, 254 // the least and the greatest
		name := prefix + "experts." + m.name
		c.tensors[name+"_blocks"] = safetensors.Tensor{Name: name + "_blocks", DType: safetensors.U8, Shape: []int{exExperts, m.rows, m.cols / 32, 16}, Data: blocks}
		c.tensors[name+"_scales"] = safetensors.Tensor{Name: name + "_scales", DType: safetensors.U8, Shape: []int{exExperts, m.rows, m.cols / 32}, Data: scales}
		for i := range n {
			code := blocks[i/2] >> (i % 2 * 4) & 15
			out[m.name] = append(out[m.name], mxfp4Table[code]*math.Ldexp(1, int(scales[i/32])-127))
		}
	}
	return out
}

// Experts in MXFP4 keep their codes and scales in both layouts, and every number.
func TestConvertMXFP4(t *testing.T) {
	c, want := newMXFP4()
	dir := c.write(t)
	for _, o := range []convert.Options{{}, {RowOrder: true}, {ExpertBits: 4}} {
		p := openPack(t, mustConvert(t, dir, o))
		l := p.x.Layout()
		if name := map[bool]string{false: "mxfp4p", true: "mxfp4"}[o.RowOrder]; l.Gate.Format.String() != name || l.Down.Format.String() != name {
			t.Fatalf("%+v: experts are %v and %v, want %s", o, l.Gate.Format, l.Down.Format, name)
		}
		if l.Bytes != 3*exInter*exHidden*17/32 {
			t.Errorf("records of %d bytes, want 17 for 32 numbers", l.Bytes)
		}
		record := make([]byte, l.Bytes)
		for layer, numbers := range want {
			for e := range exExperts {
				if err := p.x.ReadExpert(layer, e, record); err != nil {
					t.Fatal(err)
				}
				for i, part := range []model.ExpertPart{l.Gate, l.Up, l.Down} {
					w, s, b := parts(record, part)
					got := unpack(part.Format, part.Rows, part.Cols, w, s, b)
					for r := range part.Rows {
						all, row := numbers["gate_up_proj"], e*2*exInter+2*r+i
						if i == 2 {
							all, row = numbers["down_proj"], e*exHidden+r
						}
						for col := range part.Cols {
							if v := got[r*part.Cols+col]; v != float32(all[row*part.Cols+col]) {
								t.Fatalf("%+v: layer %d expert %d %s [%d, %d]: got %v, want %v", o, layer, e, usual[i], r, col, v, all[row*part.Cols+col])
							}
						}
					}
				}
			}
		}
	}
}

// As MLX stores it, MXFP4 is the same codes in words, gate and up apart, and gives the same
// records.
func TestConvertMXFP4OfMLX(t *testing.T) {
	c, _ := newMXFP4()
	want := mustConvert(t, c.write(t), convert.Options{})
	c.config["quantization"] = map[string]any{"group_size": 32, "bits": 4, "mode": "mxfp4"}
	delete(c.config, "quantization_config")
	for layer := range 2 {
		from, to := fmt.Sprintf("model.layers.%d.mlp.experts.", layer), fmt.Sprintf("model.layers.%d.mlp.switch_mlp.", layer)
		for part, bytes := range map[string]int{"weight": 16, "scales": 1} {
			old := map[string]string{"weight": "_blocks", "scales": "_scales"}[part]
			both, down := c.tensors[from+"gate_up_proj"+old], c.tensors[from+"down_proj"+old]
			delete(c.tensors, both.Name)
			delete(c.tensors, down.Name)
			put := func(name string, rows, cols int, data []byte) {
				x := safetensors.Tensor{Name: to + name + "." + part, DType: safetensors.U8, Shape: []int{exExperts, rows, cols / 32}, Data: data}
				if part == "weight" {
					x.DType, x.Shape[2] = safetensors.U32, cols/8
				}
				c.tensors[x.Name] = x
			}
			put("down_proj", exHidden, exInter, down.Data)
			width := exHidden / 32 * bytes
			for i, name := range usual[:2] {
				var rows []byte
				for r := range exExperts * exInter {
					rows = append(rows, both.Data[(2*r+i)*width:][:width]...)
				}
				put(name, exInter, exHidden, rows)
			}
		}
	}
	got := mustConvert(t, c.write(t), convert.Options{})
	for layer := range 2 {
		name := fmt.Sprintf("packed_experts/layer_%02d.bin", layer)
		sameBytes(t, name, readFile(t, filepath.Join(got, name)), readFile(t, filepath.Join(want, name)))
	}
}

// What is no MXFP4 is refused, with its tensor.
func TestConvertMXFP4Refuses(t *testing.T) {
	const up = "model.layers.1.mlp.experts.gate_up_proj"
	for name, change := range map[string]func(c *checkpoint){
		up + "_scales": func(c *checkpoint) { c.tensors[up+"_scales"].Data[77] = 255 },
		up + "_blocks": func(c *checkpoint) { c.add(up+"_blocks", safetensors.BF16, exExperts, 2*exInter, exHidden/32, 16) },
	} {
		c, _ := newMXFP4()
		change(c)
		err := convert.Convert(context.Background(), c.write(t), filepath.Join(t.TempDir(), "pack"), unsafely(convert.Options{}))
		var bad *convert.SourceError
		if !errors.As(err, &bad) || bad.Tensor != name {
			t.Errorf("%s: got %v, want a *SourceError of it", name, err)
		}
	}
}
