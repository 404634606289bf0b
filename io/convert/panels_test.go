package convert_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// byHead lists the matrices that stay in rows whatever their sizes.
var byHead = regexp.MustCompile(`\.(kv_b_proj|embed_q|unembed_out)\.`)

// Panels are the default: every array of every matrix that divides into them is the rearranged
// array in rows, at the same offset of the same file. All else is equal to the byte. Both layouts
// give the same numbers.
func TestConvertPanels(t *testing.T) {
	kimi, _ := newKimi()
	for _, c := range []struct {
		name, src string
		o         convert.Options
		least     int // tensors in panels, at least
	}{
		{"qwen3_5_moe q4", fixtures.Dir(t, fixtures.Qwen35MoEQ4), convert.Options{}, 100},
		{"qwen3_5_moe bf16", fixtures.Dir(t, fixtures.Qwen35MoEBF16), convert.Options{}, 0},
		{"qwen3_5_moe bf16 to 8 bits", fixtures.Dir(t, fixtures.Qwen35MoEBF16), convert.Options{Bits: 8}, 20},
		{"qwen3_moe q4, experts of 2 bits", fixtures.Dir(t, fixtures.Qwen3MoEQ4), convert.Options{ExpertBits: 2}, 20},
		{"qwen3_next regrouped", fixtures.Dir(t, fixtures.Qwen3NextBF16), convert.Options{Bits: 4}, 20},
		{"deepseek_v3 split", fixtures.Dir(t, fixtures.DeepseekV3Q4), convert.Options{}, 20},
		{"deepseek_v3 whole", fixtures.Dir(t, fixtures.DeepseekV3Q4KVB), convert.Options{}, 20},
		{"glm4_moe", newGlm().write(t), convert.Options{Bits: 4}, 10},
		{"minimax_m2", newMiniMax().write(t), convert.Options{Bits: 4, ExpertBits: 2}, 3},
		{"kimi_k2 int4", kimi.write(t), convert.Options{}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			panelsDir := mustConvert(t, c.src, c.o)
			c.o.RowOrder = true
			rowsDir := mustConvert(t, c.src, c.o)
			panels, rows := openPack(t, panelsDir), openPack(t, rowsDir)
			n := compareDense(t, panels, rows, panelsDir, rowsDir)
			if n < c.least {
				t.Errorf("%d tensors in panels, want %d or more", n, c.least)
			}
			comparePanels(t, panels, rows)
			arrangedAlone(t, panelsDir, rowsDir)
		})
	}
}

// compareDense compares model_weights.bin in both layouts and returns how many tensors are in
// panels.
func compareDense(t *testing.T, panels, rows *pack, panelsDir, rowsDir string) (arranged int) {
	t.Helper()
	a, b := readManifest(t, panelsDir), readManifest(t, rowsDir)
	if len(a.Tensors) != len(b.Tensors) {
		t.Errorf("%d tensors in panels, %d in rows", len(a.Tensors), len(b.Tensors))
	}
	at := panels.w.Mapping()
	for name, want := range b.Tensors {
		got := a.Tensors[name]
		layout := got.Layout
		if got.Layout = want.Layout; fmt.Sprint(got) != fmt.Sprint(want) || want.Layout != quant.Rows {
			t.Errorf("%s: %+v, in rows %+v", name, got, want)
			continue
		}
		x, y := at[want.Offset:][:want.Size], rows.w.Mapping()[want.Offset:][:want.Size]
		base := name[:strings.LastIndex(name, ".")]
		codes := b.Tensors[base+".weight"]
		quantised := codes.DType == safetensors.U32 && (strings.HasSuffix(name, ".weight") || strings.HasSuffix(name, ".scales") || strings.HasSuffix(name, ".biases"))
		if wantPanels := quantised && codes.Shape[0]%16 == 0 && !byHead.MatchString(name); wantPanels != (layout == quant.Panels) {
			t.Errorf("%s %v is in layout %s", name, want.Shape, layout)
			continue
		}
		if layout == quant.Rows {
			sameBytes(t, name, x, y)
			continue
		}
		arranged++
		n, cols := codes.Shape[0], codes.Shape[1]*32/codes.Bits
		f := quant.Affine(codes.Bits, cols/b.Tensors[base+".scales"].Shape[1])
		expected := make([]byte, len(y))
		if strings.HasSuffix(name, ".weight") {
			f.ToPanels(quant.Weight, expected, y, n, cols)
			sameNumbers(t, base, panels, rows, n, cols)
		} else {
			f.ToPanels(quant.Scales, expected, y, n, cols)
		}
		sameBytes(t, name, x, expected)
	}
	return arranged
}

// sameNumbers unpacks a matrix from both packs.
func sameNumbers(t *testing.T, name string, panels, rows *pack, n, cols int) {
	t.Helper()
	widened := func(p *pack) (quant.Format, []float32) {
		m, err := p.w.Matrix(name, n, cols)
		if err != nil {
			t.Fatal(err)
		}
		b := p.w.Mapping()
		return m.Format, unpack(m.Format, n, cols, b[m.WeightOffset:], b[m.ScalesOffset:], b[m.BiasesOffset:])
	}
	f, got := widened(panels)
	_, want := widened(rows)
	if f.Layout != quant.Panels {
		t.Errorf("%s opens as %v", name, f)
	}
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Errorf("%s[%d]: %v in panels, %v in rows", name, i, got[i], want[i])
			return
		}
	}
}

// comparePanels compares the experts in both layouts.
func comparePanels(t *testing.T, panels, rows *pack) {
	t.Helper()
	l, r := panels.x.Layout(), rows.x.Layout()
	if panels.layout() != r || l.Bytes != r.Bytes {
		t.Fatalf("layouts %+v and %+v, want them to differ in panels alone", l, r)
	}
	for _, layer := range panels.x.Layers() {
		for e := range panels.cfg.NumExperts {
			got, want := make([]byte, l.Bytes), make([]byte, l.Bytes)
			if err := panels.x.ReadExpert(layer, e, got); err != nil {
				t.Fatal(err)
			}
			if err := rows.x.ReadExpert(layer, e, want); err != nil {
				t.Fatal(err)
			}
			for i, p := range []model.ExpertPart{l.Gate, l.Up, l.Down} {
				what := fmt.Sprintf("layer %d expert %d part %d", layer, e, i)
				w, s, b := parts(got, p)
				x, y, z := parts(want, p)
				if p.Format.Codes() {
					if p.Format.Layout != quant.Panels {
						t.Fatalf("%s is stored as %v", what, p.Format)
					}
					for part, rows := range []*[]byte{&x, &y, &z} {
						panels := make([]byte, len(*rows))
						p.Format.ToPanels(quant.Part(part), panels, *rows, p.Rows, p.Cols)
						*rows = panels
					}
				}
				sameBytes(t, what+" weight", w, x)
				sameBytes(t, what+" scales", s, y)
				sameBytes(t, what+" biases", b, z)
			}
		}
	}
}

// arrangedAlone checks that "tensors" and "components" list nothing in panels, and that files in
// rows do not mention layouts at all.
func arrangedAlone(t *testing.T, panelsDir, rowsDir string) {
	t.Helper()
	for _, file := range []string{"model_weights.json", filepath.Join(expertfile.DirName, expertfile.LayoutName)} {
		var keys map[string]json.RawMessage
		readJSON(t, filepath.Join(panelsDir, file), &keys)
		for key, raw := range keys {
			if has := strings.Contains(string(raw), `"layout"`); has != strings.HasPrefix(key, "arranged_") {
				t.Errorf("%s: %s speaks of layouts: %v", file, key, has)
			}
		}
		if raw := readFile(t, filepath.Join(rowsDir, file)); strings.Contains(string(raw), "layout") && file == "model_weights.json" || strings.Contains(string(raw), "arranged") {
			t.Errorf("%s of a pack in rows speaks of layouts", file)
		}
	}
}

// A conversion to the other layout does not continue with the files of this one. A conversion to
// the same layout does and gives the same result as an uninterrupted one.
func TestConvertResumesOneLayout(t *testing.T) {
	src := fixtures.Dir(t, fixtures.Qwen3MoEQ4)
	for _, rowOrder := range []bool{false, true} {
		o := convert.Options{RowOrder: rowOrder}
		want := mustConvert(t, src, o)
		for _, first := range []bool{false, true} {
			dst := halfway(t, src, convert.Options{RowOrder: first})
			if err := convert.Convert(t.Context(), src, dst, unsafely(o)); err != nil {
				t.Fatal(err)
			}
			sameTree(t, dst, want)
		}
	}
}

// Without layout.json experts are taken to be in rows, and the pack still opens.
func TestConvertRowsWithoutLayout(t *testing.T) {
	dir := mustConvert(t, fixtures.Dir(t, fixtures.Qwen3MoEQ4), convert.Options{RowOrder: true})
	cfg := config(t, dir)
	if err := os.Remove(filepath.Join(dir, expertfile.DirName, expertfile.LayoutName)); err != nil {
		t.Fatal(err)
	}
	x, err := expertfile.Open(dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if f := x.Layout().Gate.Format; f.String() != "q4g64" {
		t.Errorf("experts are %v, want q4g64", f)
	}
}
