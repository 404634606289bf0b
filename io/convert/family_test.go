package convert_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testmodel"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// unpacked returns a matrix of a pack, widened.
func (p *pack) unpacked(name string, rows, cols int) []float32 {
	p.t.Helper()
	f, w, s, b := p.matrix(name, rows, cols)
	return unpack(f, rows, cols, w, s, b)
}

func unpack(f quant.Format, rows, cols int, w, s, b []byte) []float32 {
	out := make([]float32, rows*cols)
	for r := range rows {
		f.Unpack(out[r*cols:(r+1)*cols], cols, w, s, b, r)
	}
	return out
}

// names returns the names that a checkpoint may have for a tensor of a pack: its family's, with the
// prefixes that checkpoints put before them. Experts may be stacked or apart, and those of M3 have
// projections of other names than its dense layers.
func names(a model.Arch, pack string) (all []string) {
	for _, name := range []string{pack, strings.Replace(pack, ".switch_mlp.", ".experts.", 1), expertProjection.ReplaceAllString(pack, "$1.w_$2")} {
		name = testmodel.Published(a, name)
		all = append(all, name, "language_model."+name, "model.language_"+name)
	}
	return append(all, pack)
}

var expertProjection = regexp.MustCompile(`(\.experts\.\d+)\.(\w+_proj)`)

// published returns a tensor by its name in the pack.
func published(c *safetensors.Checkpoint, a model.Arch, pack string) (safetensors.Tensor, bool) {
	for _, n := range names(a, pack) {
		if t, ok := c.Tensor(n); ok {
			return t, true
		}
	}
	return safetensors.Tensor{}, false
}

var (
	regrouped = regexp.MustCompile(`linear_attn\.in_proj_(qkv|z|a|b)\.`)
	elsewhere = regexp.MustCompile(`linear_attn\.in_proj_(qkvz|ba)\.|(mlp\.switch_mlp|\.experts)\.|\.moe\.(gate|up|down)_proj\.|^mtp\.|^model\.visual\.|^(vision_tower|multi_modal_projector|patch_merge_mlp)\.`)
	shiftable = regexp.MustCompile(`(input_layernorm|post_attention_layernorm|model\.norm|q_norm|k_norm)\.weight$`)
)

// Every layout that has a fixture: each tensor outside the experts keeps its bytes, except for the
// shift of norms, the width of A_log and the rows of qwen3_next. Each expert's record is its nine
// or three slices. Nothing is left out.
func TestConvertFixtures(t *testing.T) {
	for _, name := range fixtures.All() {
		t.Run(name, func(t *testing.T) {
			dir := mustConvert(t, fixtures.Dir(t, name), convert.Options{RowOrder: true})
			if err := convert.Verify(context.Background(), dir); err != nil {
				t.Error(err)
			}
			p := openPack(t, dir)
			src, err := safetensors.OpenDir(fixtures.Dir(t, name))
			if err != nil {
				t.Fatal(err)
			}
			defer src.Close()
			manifest := readManifest(t, dir)
			zeroCentred := strings.HasSuffix(name, "bf16") && testmodel.ZeroCentred(p.cfg.Arch)
			same, shifted, taken := 0, 0, map[string]bool{}
			for pack, d := range manifest.Tensors {
				if p.cfg.Arch.Checkpoint().InTurns && strings.Contains(pack, ".switch_mlp.") { // TestConvertTurns has them
					continue
				}
				if p.cfg.Arch == model.Qwen3Next && regrouped.MatchString(pack) {
					continue
				}
				x, ok := published(src, p.cfg.Arch, pack)
				if !ok {
					t.Errorf("%s is not in the source", pack)
					continue
				}
				taken[x.Name] = true
				got := safetensors.Tensor{Name: pack, DType: d.DType, Shape: d.Shape, Data: p.w.Mapping()[d.Offset : d.Offset+d.Size]}
				switch {
				case zeroCentred && shiftable.MatchString(pack):
					a, b := floats(t, got), floats(t, x)
					for i := range b {
						if a[i] != b[i]+1 {
							t.Errorf("%s[%d] is %v, want %v plus 1", pack, i, a[i], b[i])
							break
						}
					}
					shifted++
				case d.DType != x.DType:
					if !strings.HasSuffix(pack, "A_log") || !slices.Equal(floats(t, got), floats(t, x)) {
						t.Errorf("%s is %s %v, want the numbers of %s %v", pack, d.DType, d.Shape, x.DType, x.Shape)
					}
				default:
					sameBytes(t, pack, got.Data, x.Data)
					same++
				}
			}
			if same < 20 || zeroCentred != (shifted > 8) {
				t.Errorf("%d tensors compared, %d shifted", same, shifted)
			}
			for _, full := range src.Names() {
				draft := strings.HasPrefix(full, fmt.Sprintf("model.layers.%d.", p.cfg.NumHiddenLayers))
				if !taken[full] && !draft && !elsewhere.MatchString(full) {
					t.Errorf("%s is not in the pack", full)
				}
			}
			if !p.cfg.Arch.Checkpoint().InTurns {
				compareExperts(t, p, src)
			}
		})
	}
}

// What text does not need is left out, and said.
func TestConvertLeavesOut(t *testing.T) {
	for name, want := range map[string]string{
		fixtures.Qwen35MoEBF16: "tensors left out, since text does not need them: 1 for pictures, 2 of layers that predict further tokens",
		fixtures.HyV3BF16:      "tensors left out, since text does not need them: 29 of layers that predict further tokens",
		fixtures.MiniMaxM3BF16: "tensors left out, since text does not need them: 27 for pictures",
		fixtures.Mistral4BF16:  "",
	} {
		var said []string
		mustConvert(t, fixtures.Dir(t, name), convert.Options{Progress: func(p convert.Progress) {
			if p.Warning != "" && !strings.Contains(p.Warning, "vocab.bin") {
				said = append(said, p.Warning)
			}
		}})
		if strings.Join(said, "; ") != want {
			t.Errorf("%s: said %q, want %q", name, said, want)
		}
	}
}

// compareExperts compares every record with slices of the source.
func compareExperts(t *testing.T, p *pack, src *safetensors.Checkpoint) {
	t.Helper()
	tensor := func(name string) safetensors.Tensor {
		t.Helper()
		x, ok := published(src, p.cfg.Arch, name)
		if !ok {
			t.Fatalf("the source has no %s", name)
		}
		return x
	}
	n := p.cfg.NumExperts
	slice := func(x safetensors.Tensor, e int) []byte { return x.Data[e*len(x.Data)/n : (e+1)*len(x.Data)/n] }
	for _, layer := range p.x.Layers() {
		at := fmt.Sprintf("model.layers.%d.mlp.", layer)
		_, stacked := published(src, p.cfg.Arch, at+"switch_mlp.up_proj.weight")
		_, fused := published(src, p.cfg.Arch, at+"experts.gate_up_proj")
		for e := range n {
			var want []byte
			switch {
			case fused:
				want = append(slices.Clone(slice(tensor(at+"experts.gate_up_proj"), e)), slice(tensor(at+"experts.down_proj"), e)...)
			default:
				for _, proj := range []string{"gate_proj", "up_proj", "down_proj"} {
					if !stacked {
						want = append(want, tensor(fmt.Sprintf("%sexperts.%d.%s.weight", at, e, proj)).Data...)
						continue
					}
					for _, part := range []string{"weight", "scales", "biases"} {
						if _, ok := published(src, p.cfg.Arch, at+"switch_mlp."+proj+"."+part); !ok && part != "weight" {
							continue // not quantised
						}
						want = append(want, slice(tensor(at+"switch_mlp."+proj+"."+part), e)...)
					}
				}
			}
			sameBytes(t, fmt.Sprintf("layer %d expert %d", layer, e), p.record(layer, e), want)
		}
	}
}

// The input projections of qwen3_next: the products of the two native matrices with a vector, split
// head by head, equal those of the four packed ones. Rows are kept whole, so the sums are equal to
// the bit.
func TestConvertRegroups(t *testing.T) {
	for _, c := range []struct {
		name string
		bits int
	}{{fixtures.Qwen3NextBF16, 0}, {fixtures.Qwen3NextBF16, 4}, {fixtures.Qwen3NextQ4, 0}} {
		p := openPack(t, fixtures.Packed(t, c.name, c.bits))
		src := source(t, fixtures.Dir(t, c.name))
		cfg, h := p.cfg, p.cfg.HiddenSize
		rng := rand.New(rand.NewPCG(1, 2))
		x := make([]float64, h)
		for i := range x {
			x[i] = rng.NormFloat64()
		}
		times := func(w []float32) []float64 {
			out := make([]float64, len(w)/h)
			for i, v := range w {
				out[i/h] += float64(v) * x[i%h]
			}
			return out
		}
		native := func(name string, rows int) []float64 {
			w := src(name + ".weight")
			if w.DType == safetensors.U32 {
				f := quant.Affine(4, 64)
				return times(unpack(f, rows, h, w.Data, src(name+".scales").Data, src(name+".biases").Data))
			}
			n := floats(t, w)
			if c.bits > 0 {
				f := quant.Affine(c.bits, 64)
				q, s, b := make([]byte, len(n)*c.bits/8), make([]byte, len(n)/32), make([]byte, len(n)/32)
				if err := f.Quantize(q, s, b, n); err != nil {
					t.Fatal(err)
				}
				n = unpack(f, rows, h, q, s, b)
			}
			return times(n)
		}
		lk, lv, dk, dv := cfg.LinearNumKeyHeads, cfg.LinearNumValueHeads, cfg.LinearKeyHeadDim, cfg.LinearValueHeadDim
		for layer, l := range cfg.Layers {
			if l.Mixer != model.LinearAttention {
				continue
			}
			at := fmt.Sprintf("model.layers.%d.linear_attn.", layer)
			// Per key head: a query, a key, the values and then the gates of its value heads; b,
			// then a, of these.
			u, ba := native(at+"in_proj_qkvz", 2*(lk*dk+lv*dv)), native(at+"in_proj_ba", 2*lv)
			var q, k, v, z, a, b []float64
			per := lv / lk
			for range lk {
				q, u = append(q, u[:dk]...), u[dk:]
				k, u = append(k, u[:dk]...), u[dk:]
				v, u = append(v, u[:per*dv]...), u[per*dv:]
				z, u = append(z, u[:per*dv]...), u[per*dv:]
				b, ba = append(b, ba[:per]...), ba[per:]
				a, ba = append(a, ba[:per]...), ba[per:]
			}
			for name, want := range map[string][]float64{"qkv": slices.Concat(q, k, v), "z": z, "a": a, "b": b} {
				if got := times(p.unpacked(at+"in_proj_"+name, len(want), h)); !slices.Equal(got, want) {
					t.Errorf("%s, %d bits: layer %d: in_proj_%s gives %v, want %v", c.name, c.bits, layer, name, got, want)
				}
			}
		}
		for _, name := range p.w.Names() {
			if strings.Contains(name, "qkvz") || strings.Contains(name, "in_proj_ba") {
				t.Errorf("%s is in the pack", name)
			}
		}
	}
}

// Each tensor of the split form of latent attention becomes one matrix [heads·rows, cols] in the
// pack. Options.Bits does not change the router.
func TestConvertLatent(t *testing.T) {
	p := openPack(t, fixtures.Packed(t, fixtures.DeepseekV3Q4, 0))
	c := p.cfg
	for name, rows := range map[string]int{"embed_q": c.NumAttentionHeads * c.KVLoraRank, "unembed_out": c.NumAttentionHeads * c.VHeadDim} {
		if f, _, _, _ := p.matrix("model.layers.0.self_attn."+name, rows, 64); f.String() != "q4g64" {
			t.Errorf("%s is %v, want q4g64", name, f)
		}
	}
	if p.w.Has("model.layers.0.self_attn.kv_b_proj.weight") {
		t.Error("kv_b_proj beside its halves")
	}
	p = openPack(t, fixtures.Packed(t, fixtures.DeepseekV3BF16, 4))
	c = p.cfg
	for _, m := range []struct {
		name       string
		rows, cols int
		format     string
	}{
		{"model.layers.1.mlp.gate", c.NumExperts, c.HiddenSize, "bf16"},
		{"model.layers.1.mlp.shared_experts.up_proj", c.SharedExpertIntermediateSize, c.HiddenSize, "q4g64"},
		{"model.layers.0.mlp.down_proj", c.HiddenSize, c.IntermediateSize, "q4g64"},
		{"model.layers.0.self_attn.kv_b_proj", c.NumAttentionHeads * (c.QKNopeHeadDim + c.VHeadDim), c.KVLoraRank, "q4g64"},
		{"model.layers.0.self_attn.kv_a_proj_with_mqa", c.LatentDim(), c.HiddenSize, "q4g64"},
	} {
		if f, _, _, _ := p.matrix(m.name, m.rows, m.cols); f.String() != m.format {
			t.Errorf("%s is %v, want %s", m.name, f, m.format)
		}
	}
	if d := readManifest(t, fixtures.Packed(t, fixtures.DeepseekV3BF16, 4)).Tensors["model.layers.1.mlp.gate.e_score_correction_bias"]; d.DType != safetensors.F32 {
		t.Errorf("the correction bias is %s, want F32", d.DType)
	}
	if got := p.x.Layers(); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("experts in layers %v, want 1 and 2", got)
	}
}

// Four-bit experts are requantised to two bits, by package quant's rule applied to the numbers that
// the four bits stand for. All else stays. Asking for more bits than there are changes nothing.
func TestConvertExpertBits(t *testing.T) {
	src := fixtures.Dir(t, fixtures.Qwen3MoEQ4)
	four := openPack(t, fixtures.Packed(t, fixtures.Qwen3MoEQ4, 0))
	dir := mustConvert(t, src, convert.Options{ExpertBits: 2})
	two := openPack(t, dir)
	sameBytes(t, "all but experts", two.w.Mapping(), four.w.Mapping())
	q2 := quant.Affine(2, 64)
	worst := 0.0
	for _, layer := range two.x.Layers() {
		for e := range two.cfg.NumExperts {
			a, b := four.record(layer, e), two.record(layer, e)
			for _, part := range []struct{ four, two model.ExpertPart }{
				{four.layout().Gate, two.layout().Gate}, {four.layout().Up, two.layout().Up}, {four.layout().Down, two.layout().Down},
			} {
				w, s, bias := parts(a, part.four)
				x := unpack(part.four.Format, part.four.Rows, part.four.Cols, w, s, bias)
				codes, scales, biases := make([]byte, len(x)/4), make([]byte, len(x)/32), make([]byte, len(x)/32)
				if err := q2.Quantize(codes, scales, biases, x); err != nil {
					t.Fatal(err)
				}
				w, s, bias = parts(b, part.two)
				what := fmt.Sprintf("layer %d expert %d", layer, e)
				if part.two.Format != q2 {
					t.Fatalf("%s: %v, want %v", what, part.two.Format, q2)
				}
				sameBytes(t, what+" codes", w, codes)
				sameBytes(t, what+" scales", s, scales)
				sameBytes(t, what+" biases", bias, biases)
				y := unpack(q2, part.two.Rows, part.two.Cols, w, s, bias)
				var diff, all float64
				for i := range x {
					diff += math.Pow(float64(x[i]-y[i]), 2)
					all += float64(x[i]) * float64(x[i])
				}
				worst = max(worst, diff/all)
			}
		}
	}
	t.Logf("two bits lose at most %.3f of an expert matrix's mean square", worst)
	if worst < 0.05 || worst > 0.25 { // about 0.16 on normal numbers
		t.Errorf("two bits lose %v of a matrix's mean square", worst)
	}
	for _, bits := range []int{4, 8} {
		sameTree(t, mustConvert(t, src, convert.Options{ExpertBits: bits}), fixtures.Packed(t, fixtures.Qwen3MoEQ4, 0))
	}
}

// Bits and ExpertBits are independent.
func TestConvertExpertBitsApart(t *testing.T) {
	src := fixtures.Dir(t, fixtures.Qwen3MoEBF16)
	for _, c := range []struct {
		o              convert.Options
		dense, experts string
	}{
		{convert.Options{Bits: 4, ExpertBits: 2}, "q4g64", "q2g64"},
		{convert.Options{Bits: 4, ExpertBits: 8}, "q4g64", "q8g64"},
		{convert.Options{ExpertBits: 4}, "bf16", "q4g64"},
		{convert.Options{Bits: 8}, "q8g64", "q8g64"},
	} {
		p := openPack(t, mustConvert(t, src, c.o))
		f, _, _, _ := p.matrix("model.layers.0.self_attn.k_proj", p.cfg.KVDim(), p.cfg.HiddenSize)
		if l := p.layout(); f.String() != c.dense || l.Gate.Format.String() != c.experts || l.Down.Format.String() != c.experts {
			t.Errorf("%+v: dense %v, experts %v and %v", c.o, f, l.Gate.Format, l.Down.Format)
		}
	}
	if err := convert.Convert(context.Background(), src, filepath.Join(t.TempDir(), "x"), convert.Options{ExpertBits: 3}); err == nil || !strings.Contains(err.Error(), "Options.ExpertBits is 3") {
		t.Errorf("3 bits: got %v", err)
	}
}

// Bits does not change codes, even those with more bits.
func TestConvertBitsOfWideCodes(t *testing.T) {
	c := newCheckpoint(safetensors.BF16)
	f := quant.Affine(8, 64)
	x := floatsOf(c.tensors["lm_head.weight"])
	w := safetensors.Tensor{Name: "lm_head.weight", DType: safetensors.U32, Shape: []int{cpVocab, cpHidden / 4}, Data: make([]byte, len(x))}
	s := safetensors.Tensor{Name: "lm_head.scales", DType: safetensors.BF16, Shape: []int{cpVocab, 1}, Data: make([]byte, 2*cpVocab)}
	b := safetensors.Tensor{Name: "lm_head.biases", DType: safetensors.BF16, Shape: []int{cpVocab, 1}, Data: make([]byte, 2*cpVocab)}
	if err := f.Quantize(w.Data, s.Data, b.Data, x); err != nil {
		t.Fatal(err)
	}
	for _, y := range []safetensors.Tensor{w, s, b} {
		c.tensors[y.Name] = y
	}
	p := openPack(t, mustConvert(t, c.write(t), convert.Options{Bits: 4, ExpertBits: 2}))
	got, codes, scales, biases := p.matrix("lm_head", cpVocab, cpHidden)
	if got != f {
		t.Fatalf("8-bit codes became %v", got)
	}
	sameBytes(t, "codes", codes, w.Data)
	sameBytes(t, "scales", scales, s.Data)
	sameBytes(t, "biases", biases, b.Data)
}
