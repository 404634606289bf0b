package convert_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// loaded reads a checkpoint, to be changed.
func loaded(t testing.TB, dir string) *checkpoint {
	t.Helper()
	c := &checkpoint{tensors: map[string]safetensors.Tensor{}}
	if err := json.Unmarshal(readFile(t, filepath.Join(dir, "config.json")), &c.config); err != nil {
		t.Fatal(err)
	}
	src, err := safetensors.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	for _, name := range src.Names() {
		x, _ := src.Tensor(name)
		x.Data, x.Shape = slices.Clone(x.Data), slices.Clone(x.Shape)
		c.tensors[name] = x
	}
	return c
}

// What a form does not allow is an error that names the tensor, with --bits, too, where that reads
// it.
func TestConvertQuantisedLies(t *testing.T) {
	const p = "model.layers.1.self_attn.q_proj"
	const e = "model.layers.1.mlp.experts.2.up_proj"
	byte0 := func(name string, to byte) func(c *checkpoint) {
		return func(c *checkpoint) { c.tensors[name].Data[0] = to }
	}
	f32 := func(name string, to float64) func(c *checkpoint) {
		return func(c *checkpoint) {
			binary.LittleEndian.PutUint32(c.tensors[name].Data, math.Float32bits(float32(to)))
		}
	}
	half := func(name string, to uint16) func(c *checkpoint) {
		return func(c *checkpoint) { binary.LittleEndian.PutUint16(c.tensors[name].Data, to) }
	}
	reshape := func(name string, shape ...int) func(c *checkpoint) {
		return func(c *checkpoint) {
			x := c.tensors[name]
			x.Shape = shape
			c.tensors[name] = x
		}
	}
	drop := func(name string) func(c *checkpoint) { return func(c *checkpoint) { delete(c.tensors, name) } }
	for _, l := range []struct {
		form   string
		change func(c *checkpoint)
		tensor string
		bits   int
	}{
		{"ct-nvfp4", byte0(e+".weight_scale", 0x7f), e + ".weight_scale", 0},
		{"ct-nvfp4", byte0(p+".weight_scale", 0x80), p + ".weight_scale", 4},
		{"ct-nvfp4", f32(e+".weight_global_scale", 0), e + ".weight_global_scale", 0},
		{"ct-nvfp4", f32(p+".weight_global_scale", math.NaN()), p + ".weight_global_scale", 0},
		{"ct-nvfp4", drop(e + ".weight_global_scale"), e + ".weight_global_scale", 0},
		{"modelopt-nvfp4", f32(e+".weight_scale_2", math.Inf(1)), e + ".weight_scale_2", 0},
		{"mlx-floats", byte0(p+".scales", 255), p + ".scales", 0},
		{"mlx-floats", byte0("model.layers.0.mlp.switch_mlp.up_proj.scales", 0xff), "model.layers.0.mlp.switch_mlp.up_proj.scales", 0},
		{"fp8-tiles", byte0(e+".weight", 0xff), e + ".weight", 0},
		{"fp8-tiles", f32(p+".weight_scale_inv", math.Inf(-1)), p + ".weight_scale_inv", 0},
		{"ct-fp8-rows", reshape(p+".weight_scale", 1, 64), p + ".weight_scale", 0},
		{"ct-fp8-one", drop(e + ".weight_scale"), e + ".weight", 0},
		{"ct-mxfp4", byte0(e+".weight_scale", 255), e + ".weight_scale", 0},
		{"ct-packed", half(e+".weight_scale", 0x7c00), e + ".weight_scale", 0},
		{"ct-packed", reshape(e+".weight_zero_point", 1, 8), e + ".weight_zero_point", 0},
		{"ct-packed", byte0(p+".weight_shape", 65), p + ".weight_shape", 0},
		{"awq", drop(p + ".qzeros"), p + ".qzeros", 0},
		{"awq", reshape(e+".qweight", 64, 16), e + ".qweight", 0},
		{"awq", half(e+".scales", 0xfe00), e + ".scales", 4},
		{"gptq", byte0(p+".qzeros", 0x0f), p + ".qzeros", 0},
		{"gptq", byte0(p+".g_idx", 3), p + ".g_idx", 0},
		{"gptq", byte0(p+".g_idx", 9), p + ".g_idx", 8},
		{"gptq-order", byte0(p+".g_idx", 9), p + ".g_idx", 8},
		{"mlx-mixed", reshape(p+".weight", 160, 8), p + ".weight", 0},
		{"mlx-mixed", drop(p + ".biases"), p + ".weight", 0},
		{"mlx-f16", half(p+".biases", 0x7e00), p + ".biases", 0},
	} {
		c := loaded(t, fixtures.Path(t, "quantised/"+l.form))
		l.change(c)
		dst := filepath.Join(t.TempDir(), "pack")
		err := convert.Convert(context.Background(), c.write(t), dst, unsafely(convert.Options{Bits: l.bits, ExpertBits: l.bits}))
		var bad *convert.SourceError
		if !errors.As(err, &bad) || bad.Tensor != l.tensor {
			t.Errorf("%s: got %v, want a *SourceError of %s", l.form, err, l.tensor)
		}
		gone(t, dst)
	}
}

// A tensor that is gone, of another type or of another shape never makes the conversion panic, and
// what it writes all the same opens.
func TestConvertQuantisedChanges(t *testing.T) {
	types := []safetensors.DType{safetensors.U8, safetensors.F8E4M3, safetensors.BF16, safetensors.F16, safetensors.F32, safetensors.I32, safetensors.U32}
	tries, done := 0, 0
	for form, dir := range fixtures.Quantised(t) {
		whole := loaded(t, dir)
		for _, name := range slices.Sorted(maps.Keys(whole.tensors)) {
			part := "layers.1.mlp.experts.0.down"
			if strings.HasPrefix(form, "mlx") { // experts are stacked
				part = "layers.0.self_attn.q_proj"
			}
			if !strings.Contains(name, part) {
				continue
			}
			x := whole.tensors[name]
			changed := []safetensors.Tensor{{}}
			for _, d := range types {
				if n, err := d.Bytes(x.Shape); err == nil && n <= len(x.Data) {
					changed = append(changed, safetensors.Tensor{Name: name, DType: d, Shape: x.Shape, Data: x.Data[:n]})
				}
			}
			for _, shape := range [][]int{{x.Elements()}, {x.Elements(), 1}, {1, x.Elements()}, {2, x.Elements() / 2}, append([]int{1}, x.Shape...)} {
				if n, err := x.DType.Bytes(shape); err == nil && n == len(x.Data) {
					changed = append(changed, safetensors.Tensor{Name: name, DType: x.DType, Shape: shape, Data: x.Data})
				}
			}
			for i, to := range changed {
				if !testenv.Share(t, fmt.Sprint(form, name, i), 6) {
					continue
				}
				c := &checkpoint{config: whole.config, tensors: maps.Clone(whole.tensors)}
				if delete(c.tensors, name); to.Name != "" {
					c.tensors[name] = to
				}
				dst := filepath.Join(t.TempDir(), "pack")
				err := convert.Convert(context.Background(), c.write(t), dst, unsafely(convert.Options{}))
				var bad *convert.SourceError
				switch tries++; {
				case err == nil:
					done++
					openPack(t, dst)
				case !errors.As(err, &bad) && !strings.Contains(err.Error(), "same formats"):
					t.Errorf("%s: %s as %s %v: %v", form, name, to.DType, to.Shape, err)
				}
			}
		}
	}
	if tries < testenv.Rounds(30, 30, 100) || done > tries/2 {
		t.Errorf("%d of %d changed checkpoints were taken", done, tries)
	}
}

// Inputs whose groups are in no order are refused with what to do, and that does it.
func TestConvertOutOfOrder(t *testing.T) {
	dir := fixtures.Path(t, "quantised/"+fixtures.OutOfOrder)
	err := convert.Convert(context.Background(), dir, filepath.Join(t.TempDir(), "pack"), unsafely(convert.Options{}))
	var bad *convert.SourceError
	if !errors.As(err, &bad) || !strings.HasSuffix(bad.Tensor, ".g_idx") || !strings.Contains(err.Error(), "--bits") {
		t.Errorf("got %v, want a *SourceError of g_idx that says --bits", err)
	}
	const name, rows, cols, group = "model.layers.0.self_attn.q_proj", 64, 128, 32
	src := source(t, dir)
	word := func(x safetensors.Tensor, i int) uint32 { return binary.LittleEndian.Uint32(x.Data[4*i:]) }
	codes, zeros, of, scales := src(name+".qweight"), src(name+".qzeros"), src(name+".g_idx"), floats(t, src(name+".scales"))
	var want []float32
	for o := range rows {
		for i := range cols {
			g := int(word(of, i))
			q := word(codes, i/8*rows+o) >> (i % 8 * 4) & 15
			z := word(zeros, g*rows/8+o/8) >> (o % 8 * 4) & 15
			want = append(want, float32(int(q)-int(z)-1)*scales[g*rows+o])
		}
	}
	p := openPack(t, mustConvert(t, dir, convert.Options{Bits: 8}))
	f, w, s, b := p.matrix(name, rows, cols)
	ww, ws, wb := make([]byte, len(w)), make([]byte, len(s)), make([]byte, len(b))
	if err := quant.Affine(8, 64).Quantize(ww, ws, wb, want); err != nil || f != quant.Affine(8, 64) {
		t.Fatal(f, err)
	}
	sameBytes(t, "codes", w, ww)
	sameBytes(t, "scales", s, ws)
	sameBytes(t, "biases", b, wb)
}
