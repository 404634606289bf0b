package convert_test

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
	"github.com/moeflux/moeflux-actor/tokenizer"
)

// pack is an opened result.
type pack struct {
	t   *testing.T
	cfg *model.Config
	w   *weights.File
	x   *expertfile.File
}

func openPack(t *testing.T, dir string) *pack {
	t.Helper()
	p := &pack{t: t, cfg: config(t, dir)}
	var err error
	if p.w, err = weights.Open(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.w.Close() })
	if p.x, err = expertfile.Open(dir, p.cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.x.Close() })
	if err := p.w.Check(p.cfg); err != nil {
		t.Errorf("Check: %v", err)
	}
	return p
}

// matrix returns the bytes of a matrix's parts in row order.
func (p *pack) matrix(name string, rows, cols int) (f quant.Format, weight, scales, biases []byte) {
	p.t.Helper()
	m, err := p.w.Matrix(name, rows, cols)
	if err != nil {
		p.t.Fatal(err)
	}
	b := p.w.Mapping()
	weight, scales, biases = inRows(m.Format, rows, cols, b[m.WeightOffset:][:m.Format.WeightBytes(rows, cols)],
		b[m.ScalesOffset:][:m.Format.ScaleBytes(rows, cols)], b[m.BiasesOffset:][:m.Format.BiasBytes(rows, cols)])
	return m.Format.In(quant.Rows, rows), weight, scales, biases
}

// inRows undoes panels code by code, by definition: 64 bytes hold the next inputs of 16 rows, four
// bytes for each row. Byte j of a row has the inputs j, j+4, … from its lowest bits on.
func inRows(f quant.Format, rows, cols int, weight, scales, biases []byte) (w, s, b []byte) {
	if f.Layout == quant.Rows {
		return weight, scales, biases
	}
	w, s, b = make([]byte, len(weight)), make([]byte, len(scales)), make([]byte, len(biases))
	perWord, perByte, groups := 32/f.Bits(), 8/f.Bits(), cols/f.Group()
	for r := range rows {
		for c := range cols {
			from := (r/16*cols+c/perWord*perWord)*16*f.Bits()/8 + r%16*4 + c%4
			code := weight[from] >> (c % perWord / 4 * f.Bits()) & (1<<f.Bits() - 1)
			w[(r*cols+c)/perByte] |= code << (c % perByte * f.Bits())
		}
		for g := range groups {
			from, n := (r/16*groups+g)*16+r%16, f.ScaleBytes(1, f.Group())
			copy(s[n*(r*groups+g):][:n], scales[n*from:])
			if n := f.BiasBytes(1, f.Group()); n > 0 && !f.Coding().Factor() {
				copy(b[n*(r*groups+g):][:n], biases[n*from:])
			}
		}
	}
	if f.Coding().Factor() { // one of each row, in order
		copy(b, biases)
	}
	return w, s, b
}

// layout returns the layout of the records that record returns: the pack's, in rows.
func (p *pack) layout() model.ExpertLayout { return rowsOf(p.x.Layout()) }

func rowsOf(l model.ExpertLayout) model.ExpertLayout {
	for _, part := range []*model.ExpertPart{&l.Gate, &l.Up, &l.Down} {
		part.Format = part.Format.In(quant.Rows, part.Rows)
	}
	return l
}

// parts splits a record into its blocks.
func parts(record []byte, p model.ExpertPart) (weight, scales, biases []byte) {
	f := p.Format
	return record[p.WeightOffset:][:f.WeightBytes(p.Rows, p.Cols)], record[p.ScalesOffset:][:f.ScaleBytes(p.Rows, p.Cols)],
		record[p.BiasesOffset:][:f.BiasBytes(p.Rows, p.Cols)]
}

// record returns an expert in row order.
func (p *pack) record(layer, e int) []byte {
	p.t.Helper()
	l := p.x.LayoutOf(layer)
	b := make([]byte, l.Bytes)
	if err := p.x.ReadExpert(layer, e, b); err != nil {
		p.t.Fatal(err)
	}
	for _, part := range []model.ExpertPart{l.Gate, l.Up, l.Down} {
		w, s, bias := parts(b, part)
		rw, rs, rb := inRows(part.Format, part.Rows, part.Cols, w, s, bias)
		copy(w, rw)
		copy(s, rs)
		copy(bias, rb)
	}
	return b
}

// Repacking the MLX layout changes no byte of any slice of an expert or of any other tensor.
func TestConvertMLX(t *testing.T) {
	dir := fixtures.Dir(t, fixtures.Qwen35MoEQ4)
	src := source(t, dir)
	out := mustConvert(t, dir, convert.Options{RowOrder: true})
	p := openPack(t, out)
	for _, layer := range p.x.Layers() {
		for e := range p.cfg.NumExperts {
			r := p.record(layer, e)
			for name, part := range map[string]model.ExpertPart{"gate_proj": p.layout().Gate, "up_proj": p.layout().Up, "down_proj": p.layout().Down} {
				w, s, b := parts(r, part)
				for comp, got := range map[string][]byte{"weight": w, "scales": s, "biases": b} {
					x := src(fmt.Sprintf("language_model.model.layers.%d.mlp.switch_mlp.%s.%s", layer, name, comp))
					n := len(x.Data) / p.cfg.NumExperts
					sameBytes(t, fmt.Sprintf("layer %d expert %d %s.%s", layer, e, name, comp), got, x.Data[e*n:(e+1)*n])
				}
			}
		}
	}
	checked := 0
	c, err := safetensors.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	manifest := readManifest(t, out)
	for _, name := range c.Names() {
		if strings.Contains(name, ".switch_mlp.") {
			continue
		}
		d, ok := manifest.Tensors[strings.TrimPrefix(name, "language_model.")]
		if !ok {
			t.Errorf("%s is not in the pack", name)
			continue
		}
		x := src(name)
		if d.DType != x.DType || !slices.Equal(d.Shape, x.Shape) {
			t.Errorf("%s: got %s %v, want %s %v", name, d.DType, d.Shape, x.DType, x.Shape)
		}
		if d.Offset%64 != 0 {
			t.Errorf("%s begins at %d, no multiple of 64", name, d.Offset)
		}
		wantBits := 0
		if x.DType == safetensors.U32 {
			wantBits = 4
			if strings.HasSuffix(name, "mlp.gate.weight") || strings.HasSuffix(name, "shared_expert_gate.weight") {
				wantBits = 8
			}
		}
		if d.Bits != wantBits {
			t.Errorf("%s: got %d bits, want %d", name, d.Bits, wantBits)
		}
		sameBytes(t, name, p.w.Mapping()[d.Offset:d.Offset+d.Size], x.Data)
		checked++
	}
	if checked != len(manifest.Tensors) || checked < 200 {
		t.Errorf("%d tensors of the source checked, %d in the pack", checked, len(manifest.Tensors))
	}
	for _, name := range []string{"config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"} {
		got, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Error(err)
			continue
		}
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		sameBytes(t, name, got, want)
	}
}

func readManifest(t *testing.T, dir string) *weights.Manifest {
	t.Helper()
	var m weights.Manifest
	readJSON(t, filepath.Join(dir, weights.ManifestName), &m)
	return &m
}

// vocab.bin read back gives the tokenizer's bytes.
func TestConvertVocab(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	raw, err := os.ReadFile(filepath.Join(dir, "vocab.bin"))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Load(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	n, last := binary.LittleEndian.Uint32(raw), binary.LittleEndian.Uint32(raw[4:])
	if int(n) != tok.VocabSize() || last != n-1 {
		t.Fatalf("%d entries, greatest id %d; the tokenizer has %d", n, last, tok.VocabSize())
	}
	raw = raw[8:]
	for id := range int32(n) {
		size := int(binary.LittleEndian.Uint16(raw))
		want, _ := tok.TokenBytes(id)
		sameBytes(t, fmt.Sprintf("token %d", id), raw[2:2+size], want)
		raw = raw[2+size:]
	}
	if len(raw) != 0 {
		t.Errorf("%d bytes after the last entry", len(raw))
	}
}

// The Hugging Face layout: names, fused experts, norms plus one in float32, the axis of the
// convolution; nothing of mtp or vision.
func TestConvertHuggingFace(t *testing.T) {
	dir := fixtures.Dir(t, fixtures.Qwen35MoEBF16)
	src := source(t, dir)
	out := mustConvert(t, dir, convert.Options{})
	p := openPack(t, out)
	const root = "model.language_model."
	l := p.layout()
	if l.Gate.Format != quant.BF16 || l.Bytes != 3*64*64*2 {
		t.Errorf("layout %+v, want three BF16 matrices [64, 64]", l)
	}
	for layer := range p.cfg.NumHiddenLayers {
		fused := src(fmt.Sprintf("%slayers.%d.mlp.experts.gate_up_proj", root, layer)).Data
		down := src(fmt.Sprintf("%slayers.%d.mlp.experts.down_proj", root, layer)).Data
		const m = 64 * 64 * 2
		for e := range p.cfg.NumExperts {
			want := append(slices.Clone(fused[e*2*m:(e+1)*2*m]), down[e*m:(e+1)*m]...)
			sameBytes(t, fmt.Sprintf("layer %d expert %d", layer, e), p.record(layer, e), want)
		}
	}
	vector := func(name string, n int, dtype safetensors.DType, shape []int, shift float32) {
		t.Helper()
		got, err := p.w.Vector("model."+name, n)
		if err != nil {
			t.Error(err)
			return
		}
		for i, w := range floats(t, src(root+name)) {
			if got[i] != w+shift {
				t.Errorf("%s[%d]: got %v, want %v + %v", name, i, got[i], w, shift)
				return
			}
		}
		if d := readManifest(t, out).Tensors["model."+name]; d.DType != dtype || !slices.Equal(d.Shape, shape) {
			t.Errorf("%s: got %s %v, want %s %v", name, d.DType, d.Shape, dtype, shape)
		}
	}
	vector("norm.weight", 64, "F32", []int{64}, 1)
	vector("layers.0.input_layernorm.weight", 64, "F32", []int{64}, 1)
	vector("layers.2.post_attention_layernorm.weight", 64, "F32", []int{64}, 1)
	vector("layers.3.self_attn.q_norm.weight", 32, "F32", []int{32}, 1)
	vector("layers.3.self_attn.k_norm.weight", 32, "F32", []int{32}, 1)
	vector("layers.0.linear_attn.norm.weight", 16, "F32", []int{16}, 0)
	vector("layers.0.linear_attn.A_log", 4, "F32", []int{4}, 0)
	vector("layers.0.linear_attn.dt_bias", 4, "BF16", []int{4}, 0)
	vector("layers.1.linear_attn.conv1d.weight", 128*4, "BF16", []int{128, 4, 1}, 0)
	for name, rows := range map[string]int{"embed_tokens": 320, "layers.0.linear_attn.in_proj_qkv": 128, "layers.3.self_attn.q_proj": 128, "layers.0.mlp.gate": 8} {
		f, w, _, _ := p.matrix("model."+name, rows, 64)
		if f != quant.BF16 {
			t.Errorf("%s: got %v, want bf16", name, f)
		}
		sameBytes(t, name, w, src(root+name+".weight").Data)
	}
	_, head, _, _ := p.matrix("lm_head", 320, 64)
	sameBytes(t, "lm_head", head, src("lm_head.weight").Data)
	for _, name := range p.w.Names() {
		if strings.Contains(name, "mtp") || strings.Contains(name, "visual") || strings.Contains(name, "experts.") || strings.Contains(name, "language_model") {
			t.Errorf("%s is in the pack", name)
		}
	}
	if _, err := os.Stat(filepath.Join(out, "vocab.bin")); !os.IsNotExist(err) {
		t.Errorf("vocab.bin without a tokenizer: %v", err)
	}
}

// With Bits, every matrix gets the codes that package quant gives its numbers; gates get 8 bits.
func TestConvertQuantises(t *testing.T) {
	dir := fixtures.Dir(t, fixtures.Qwen35MoEBF16)
	src := source(t, dir)
	const root = "model.language_model."
	check := func(what string, bits int, x []float32, weight, scales, biases []byte) {
		t.Helper()
		f := quant.Affine(bits, 64)
		w, s, b := make([]byte, len(x)*bits/8), make([]byte, len(x)/32), make([]byte, len(x)/32)
		if err := f.Quantize(w, s, b, x); err != nil {
			t.Fatal(err)
		}
		sameBytes(t, what+" codes", weight, w)
		sameBytes(t, what+" scales", scales, s)
		sameBytes(t, what+" biases", biases, b)
	}
	for _, bits := range []int{4, 8} {
		p := openPack(t, mustConvert(t, dir, convert.Options{Bits: bits}))
		for name, rows := range map[string]int{"embed_tokens": 320, "layers.0.linear_attn.in_proj_b": 4, "layers.0.linear_attn.out_proj": 64,
			"layers.3.self_attn.o_proj": 64, "layers.1.mlp.gate": 8, "layers.1.mlp.shared_expert_gate": 1} {
			f, w, s, b := p.matrix("model."+name, rows, 64)
			want := bits
			if strings.HasSuffix(name, "gate") {
				want = 8
			}
			if f.Bits() != want || f.Group() != 64 {
				t.Errorf("%s: got %v, want %d bits", name, f, want)
				continue
			}
			check(name, want, floats(t, src(root+name+".weight")), w, s, b)
		}
		for layer := range p.cfg.NumHiddenLayers {
			fused := floats(t, src(fmt.Sprintf("%slayers.%d.mlp.experts.gate_up_proj", root, layer)))
			down := floats(t, src(fmt.Sprintf("%slayers.%d.mlp.experts.down_proj", root, layer)))
			const m = 64 * 64
			for e := range p.cfg.NumExperts {
				r := p.record(layer, e)
				for _, c := range []struct {
					part model.ExpertPart
					x    []float32
				}{
					{p.layout().Gate, fused[2*e*m : (2*e+1)*m]}, {p.layout().Up, fused[(2*e+1)*m : (2*e+2)*m]}, {p.layout().Down, down[e*m : (e+1)*m]},
				} {
					w, s, b := parts(r, c.part)
					check(fmt.Sprintf("layer %d expert %d", layer, e), bits, c.x, w, s, b)
				}
			}
		}
		if got, err := p.w.Vector("model.norm.weight", 64); err != nil || got[0] != floats(t, src(root+"norm.weight"))[0]+1 {
			t.Errorf("norm: got %v, %v", got[0], err)
		}
	}
}

// Bits does not change a quantised source.
func TestConvertBitsOfQuantisedSource(t *testing.T) {
	dir := fixtures.Dir(t, fixtures.Qwen35MoEQ4)
	sameTree(t, mustConvert(t, dir, convert.Options{Bits: 8}), fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0))
}

// Matrices of F16 and F32 become F32, exactly.
func TestConvertFloatTypes(t *testing.T) {
	for _, d := range []safetensors.DType{safetensors.F16, safetensors.F32} {
		dir := newCheckpoint(d).write(t)
		src := source(t, dir)
		p := openPack(t, mustConvert(t, dir, convert.Options{}))
		wide := func(x []float32) []byte {
			var b []byte
			for _, v := range x {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
			}
			return b
		}
		f, w, _, _ := p.matrix("lm_head", cpVocab, cpHidden)
		if f != quant.F32 {
			t.Errorf("%s: lm_head is %v, want f32", d, f)
		}
		sameBytes(t, string(d)+" lm_head", w, wide(floats(t, src("lm_head.weight"))))
		const m = cpInter * cpHidden
		want := append(slices.Clone(floats(t, src("model.layers.1.mlp.experts.gate_up_proj"))[2*2*m:3*2*m]), floats(t, src("model.layers.1.mlp.experts.down_proj"))[2*m:3*m]...)
		sameBytes(t, string(d)+" expert", p.record(1, 2), wide(want))
		norm, err := p.w.Vector("model.layers.0.input_layernorm.weight", cpHidden)
		if err != nil || norm[5] != 1+floats(t, src("model.layers.0.input_layernorm.weight"))[5] {
			t.Errorf("%s: norm %v, %v", d, norm[5], err)
		}
		for _, name := range []string{"linear_attn.dt_bias", "linear_attn.A_log", "linear_attn.norm.weight", "linear_attn.conv1d.weight"} {
			name = "model.layers.0." + name
			x := floats(t, src(name))
			if got, err := p.w.Vector(name, len(x)); err != nil || !slices.Equal(got, x) {
				t.Errorf("%s: %s: got %v, %v, want %v", d, name, got, err, x)
			}
		}
	}
}

// All three ways to store experts give the same files.
func TestConvertExpertForms(t *testing.T) {
	for _, bits := range []int{0, 4} {
		want := mustConvert(t, newCheckpoint(safetensors.BF16).write(t), convert.Options{Bits: bits})
		for name, change := range map[string]func(*checkpoint){"one tensor an expert": (*checkpoint).perExpert, "stacked": (*checkpoint).stacked} {
			t.Run(fmt.Sprintf("%s, bits %d", name, bits), func(t *testing.T) {
				c := newCheckpoint(safetensors.BF16)
				change(c)
				got := mustConvert(t, c.write(t), convert.Options{Bits: bits})
				for layer := range 2 {
					file := filepath.Join("packed_experts", expertfile.LayerName(layer))
					sameBytes(t, file, readFile(t, filepath.Join(got, file)), readFile(t, filepath.Join(want, file)))
				}
				sameBytes(t, "weights", readFile(t, filepath.Join(got, weights.DataName)), readFile(t, filepath.Join(want, weights.DataName)))
			})
		}
	}
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Checkpoints that mlx-lm converted without quantising have shifted norms already. The shape of the
// convolution tells.
func TestConvertConvertedBF16(t *testing.T) {
	c := newCheckpoint(safetensors.BF16)
	conv := c.tensors["model.layers.0.linear_attn.conv1d.weight"]
	conv.Shape = []int{cpConv, 4, 1}
	c.tensors[conv.Name] = conv
	dir := c.write(t)
	p := openPack(t, mustConvert(t, dir, convert.Options{}))
	got, err := p.w.Vector("model.norm.weight", cpHidden)
	if err != nil || !slices.Equal(got, floats(t, c.tensors["model.norm.weight"])) {
		t.Errorf("norm: got %v, %v, want it unchanged", got, err)
	}
}

// A tied head is not written twice, whether the source has a copy of it or not.
func TestConvertTied(t *testing.T) {
	for _, copied := range []bool{true, false} {
		c := newCheckpoint(safetensors.BF16)
		c.config["tie_word_embeddings"] = true
		if !copied {
			delete(c.tensors, "lm_head.weight")
		}
		p := openPack(t, mustConvert(t, c.write(t), convert.Options{}))
		if p.w.Has("lm_head.weight") || !p.w.Has("model.embed_tokens.weight") {
			t.Errorf("copy in the source: %v: names %v", copied, p.w.Names())
		}
	}
}

// Matrices whose inputs do not divide into groups are kept, the others quantised.
func TestConvertIndivisible(t *testing.T) {
	p := openPack(t, mustConvert(t, newCheckpoint(safetensors.BF16).write(t), convert.Options{Bits: 4}))
	if f, _, _, _ := p.matrix("model.layers.0.linear_attn.out_proj", cpHidden, 32); f != quant.BF16 {
		t.Errorf("32 inputs: got %v, want bf16", f)
	}
	if f, _, _, _ := p.matrix("model.layers.0.linear_attn.in_proj_z", 32, cpHidden); f.String() != "q4g64" {
		t.Errorf("64 inputs: got %v, want q4g64", f)
	}
}

func TestPackName(t *testing.T) {
	for name, want := range map[string]string{
		"model.language_model.layers.0.mlp.gate.weight": "model.layers.0.mlp.gate.weight",
		"language_model.model.layers.0.mlp.gate.weight": "model.layers.0.mlp.gate.weight",
		"model.layers.0.mlp.gate.weight":                "model.layers.0.mlp.gate.weight",
		"language_model.lm_head.weight":                 "lm_head.weight",
		"lm_head.weight":                                "lm_head.weight",
		"mtp.layers.0.input_layernorm.weight":           "",
		"language_model.mtp.norm.weight":                "",
		"model.visual.blocks.0.attn.qkv.weight":         "",
		"vision_tower.patch_embed.proj.weight":          "",
		"model.layers.0.self_attn.rotary_emb.inv_freq":  "",
		"model.language_model.norm.weight":              "model.norm.weight",
		"model.layers.0.linear_attn.visual_proj.weight": "model.layers.0.linear_attn.visual_proj.weight",
	} {
		if got, ok := convert.PackName(name); got != want && ok || ok != (want != "") {
			t.Errorf("%s: got %q, %v, want %q", name, got, ok, want)
		}
	}
}

// The result contains neither temporary files nor the record of progress.
func TestConvertLeavesNothingElse(t *testing.T) {
	dst := mustConvert(t, fixtures.Dir(t, fixtures.Qwen35MoEBF16), convert.Options{})
	gone(t, dst+".partial")
	err := filepath.WalkDir(dst, func(path string, d fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".tmp") || filepath.Base(path) == convert.StateName {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
