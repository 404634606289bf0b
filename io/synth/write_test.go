package synth_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/io/synth"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// digest hashes every file of a directory, by name.
func digest(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		sum := sha256.Sum256(raw)
		out[strings.TrimPrefix(path, dir+"/")] = hex.EncodeToString(sum[:8])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The same options give the same bytes, however many workers compute them, and exactly these bytes
// as long as recordFormat stays the same. The sums come from this package: they show when a change
// of the bytes needs a new recordFormat.
func TestSameBytes(t *testing.T) {
	for _, c := range []struct {
		family   string
		rowOrder bool
		want     [2]string // of weights and of experts of layer 2
	}{
		{"qwen3_5_moe", true, [2]string{"40250301e71f8d02", "c221a8b4c4d0338f"}},
		{"qwen3_5_moe", false, [2]string{"ea3a1c73f1d833bf", "fd586429992ddf3c"}},
		{"deepseek_v3", true, [2]string{"5317f7c5e405ad36", "7d4e2d50cf626dcb"}},
		{"deepseek_v3", false, [2]string{"7056c1579345cb2c", "92395179629307ae"}},
	} {
		family, want := c.family, c.want
		o := tiny(t, family)
		o.Workers, o.RowOrder = 1, c.rowOrder
		dir, _ := write(t, o)
		first := digest(t, dir)
		o.Workers = 5
		dir, _ = write(t, o)
		if again := digest(t, dir); !maps.Equal(first, again) {
			t.Errorf("%s: five workers write %v, one %v", family, again, first)
		}
		if got := [2]string{first[weights.DataName], first["packed_experts/layer_02.bin"]}; got != want {
			t.Errorf("%s: weights and experts of layer 2 are %q, want %q: another format needs another number", family, got, want)
		}
		o.Seed++
		dir, _ = write(t, o)
		for name, sum := range digest(t, dir) {
			if strings.HasSuffix(name, ".bin") && sum == first[name] {
				t.Errorf("%s: another seed gives the same %s", family, name)
			}
		}
	}
}

// Both layouts hold the same numbers at the same offsets. Matrices by head and those that do not
// fill whole panels stay in rows.
func TestLayouts(t *testing.T) {
	for _, family := range families() {
		o := tiny(t, family)
		panels, m := write(t, o)
		o.RowOrder = true
		rows, r := write(t, o)
		if m.Options().RowOrder || !r.Options().RowOrder {
			t.Errorf("%s: the layout changes from New to Load", family)
		}
		n := sameDense(t, family, panels, rows)
		if n < 20 {
			t.Errorf("%s: %d matrices in panels, want 20 or more", family, n)
		}
		x, y := openExperts(t, panels, m.Config()), openExperts(t, rows, m.Config())
		a, b := make([]byte, x.Layout().Bytes), make([]byte, y.Layout().Bytes)
		for _, layer := range x.Layers() {
			for _, e := range []int{0, x.Experts() - 1} {
				if err := errors.Join(x.ReadExpert(layer, e, a), y.ReadExpert(layer, e, b)); err != nil {
					t.Fatal(err)
				}
				lx, ly := x.Layout(), y.Layout()
				for i, p := range []model.ExpertPart{lx.Gate, lx.Up, lx.Down} {
					q := []model.ExpertPart{ly.Gate, ly.Up, ly.Down}[i]
					if p.Format.String() != "q4g64p" || q.Format.String() != "q4g64" {
						t.Fatalf("%s: experts are %v and in rows %v", family, p.Format, q.Format)
					}
					if !slices.Equal(widened(p.Format, p.Rows, p.Cols, a[p.WeightOffset:], a[p.ScalesOffset:], a[p.BiasesOffset:]),
						widened(q.Format, q.Rows, q.Cols, b[q.WeightOffset:], b[q.ScalesOffset:], b[q.BiasesOffset:])) {
						t.Errorf("%s layer %d expert %d part %d: other numbers in panels than in rows", family, layer, e, i)
					}
				}
			}
		}
	}
}

// sameDense compares the matrices of two packs of the same tensors and returns how many of the
// first are in panels.
func sameDense(t *testing.T, what string, panelsDir, rowsDir string) (arranged int) {
	t.Helper()
	panels, rows := openWeights(t, panelsDir), openWeights(t, rowsDir)
	var manifest weights.Manifest
	raw, err := os.ReadFile(filepath.Join(rowsDir, weights.ManifestName))
	if err == nil {
		err = json.Unmarshal(raw, &manifest)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range manifest.Tensors {
		base, ok := strings.CutSuffix(name, ".weight")
		if !ok || d.DType != safetensors.U32 {
			continue
		}
		n, cols := d.Shape[0], d.Shape[1]*32/d.Bits
		x, err := panels.Matrix(base, n, cols)
		if err != nil {
			t.Fatal(err)
		}
		y, err := rows.Matrix(base, n, cols)
		if err != nil {
			t.Fatal(err)
		}
		wantPanels := n%16 == 0 && !strings.HasSuffix(base, "kv_b_proj")
		if y.Format.Layout != quant.Rows || wantPanels != (x.Format.Layout == quant.Panels) || x.WeightOffset != y.WeightOffset {
			t.Errorf("%s %s of %d rows: %v at %d, in rows %v at %d", what, name, n, x.Format, x.WeightOffset, y.Format, y.WeightOffset)
		}
		if wantPanels {
			arranged++
		}
		a, b := panels.Mapping(), rows.Mapping()
		if !slices.Equal(widened(x.Format, n, cols, a[x.WeightOffset:], a[x.ScalesOffset:], a[x.BiasesOffset:]),
			widened(y.Format, n, cols, b[y.WeightOffset:], b[y.ScalesOffset:], b[y.BiasesOffset:])) {
			t.Errorf("%s %s: other numbers in panels than in rows", what, name)
		}
	}
	return arranged
}

func widened(f quant.Format, rows, cols int, weight, scales, biases []byte) []float32 {
	out := make([]float32, rows*cols)
	for r := range rows {
		f.Unpack(out[r*cols:(r+1)*cols], cols, weight, scales, biases, r)
	}
	return out
}

func openWeights(t *testing.T, dir string) *weights.File {
	t.Helper()
	w, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func openExperts(t *testing.T, dir string, cfg *model.Config) *expertfile.File {
	t.Helper()
	x, err := expertfile.Open(dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

// The written directory can be opened, has the predicted size, and contains nothing else.
func TestFiles(t *testing.T) {
	for _, family := range families() {
		dir, m := write(t, tiny(t, family))
		c := m.Config()
		w, err := weights.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if err := w.Check(c); err != nil {
			t.Error(err)
		}
		x, err := expertfile.Open(dir, c)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		dense, experts := m.Size()
		if got := int64(len(w.Mapping())); got != dense {
			t.Errorf("%s: %s has %d bytes, Size says %d", family, weights.DataName, got, dense)
		}
		if got := int64(x.Layout().Bytes) * int64(c.NumExperts) * int64(len(x.Layers())); got != experts {
			t.Errorf("%s: experts have %d bytes, Size says %d", family, got, experts)
		}
		want := []string{"config.json", "generation_config.json", "model_weights.bin", "model_weights.json", "packed_experts/layout.json", "packed_experts/records.crc32c", "synth.json"}
		for _, l := range c.MoELayers() {
			want = append(want, "packed_experts/"+expertfile.LayerName(l))
		}
		checkSums(t, dir, x)
		slices.Sort(want)
		if got := slices.Sorted(maps.Keys(digest(t, dir))); !slices.Equal(got, want) {
			t.Errorf("%s: files %v, want %v", family, got, want)
		}
	}
}

// checkSums checks that the checksums match the records.
func checkSums(t *testing.T, dir string, x *expertfile.File) {
	t.Helper()
	if err := x.LoadSums(); err != nil {
		t.Error(err)
	}
	record := make([]byte, x.Layout().Bytes)
	for _, l := range x.Layers() {
		for e := range x.Experts() {
			if err := errors.Join(x.ReadExpert(l, e, record), x.CheckRecord(l, e, record)); err != nil {
				t.Error(err)
			}
		}
	}
	record[7] ^= 1
	if l := x.Layers()[0]; x.CheckRecord(l, x.Experts()-1, record) == nil {
		t.Errorf("%s: another record passes for the last of layer %d", dir, l)
	}
}

// Routers and shared gates are stored as converters of checkpoints store them, and config.json says
// so.
func TestStorage(t *testing.T) {
	// of gate, shared gate, and a key of the quantisation
	for family, want := range map[string][3]string{
		"qwen3_moe":   {"q8g64p", "", "model.layers.1.mlp.gate"},
		"qwen3_5_moe": {"q8g64p", "q8g64", "language_model.model.layers.1.mlp.shared_expert_gate"},
		"qwen3_next":  {"q8g64", "q8g64", "model.layers.1.mlp.shared_expert_gate"},
		"deepseek_v3": {"bf16", "", ""},
	} {
		dir, m := write(t, tiny(t, family))
		w, err := weights.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		for i, name := range []string{"gate", "shared_expert_gate"} {
			rows := m.Config().NumExperts
			if i == 1 {
				rows = 1
			}
			if want[i] == "" {
				continue
			}
			x, err := w.Matrix("model.layers.1.mlp."+name, rows, m.Config().HiddenSize)
			if err != nil || x.Format.String() != want[i] {
				t.Errorf("%s %s: %v, %v, want %s", family, name, x.Format, err, want[i])
			}
		}
		raw, err := os.ReadFile(filepath.Join(dir, "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			Quantization map[string]any `json:"quantization"`
		}
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		_, ok := c.Quantization[want[2]]
		if ok != (want[2] != "") || c.Quantization["bits"] != 4.0 || c.Quantization["group_size"] != 64.0 {
			t.Errorf("%s: quantization %v, want 4 bits in groups of 64 and %q", family, c.Quantization, want[2])
		}
	}
}

// left returns what is in a directory.
func left(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// Write leaves nothing behind if it is cancelled at its start, in the middle or at its very end.
func TestCancel(t *testing.T) {
	o := tiny(t, "qwen3_5_moe")
	m, err := synth.New(o)
	if err != nil {
		t.Fatal(err)
	}
	dense, experts := m.Size()
	cause := errors.New("enough")
	for _, share := range []float64{0, 0.5, 1} {
		parent := t.TempDir()
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		if share == 0 {
			cancel(cause)
		}
		err := m.Write(ctx, filepath.Join(parent, "model"), func(p synth.Progress) {
			if p.Total != dense+experts || p.Done > p.Total {
				t.Errorf("progress %+v, want a total of %d", p, dense+experts)
			}
			if float64(p.Done) >= share*float64(p.Total) {
				cancel(cause)
			}
		})
		if !errors.Is(err, cause) {
			t.Errorf("cancelled at %g: %v, want %v", share, err, cause)
		}
		if names := left(t, parent); len(names) > 0 {
			t.Errorf("cancelled at %g: %v is left, want nothing", share, names)
		}
	}
}

// A file that cannot be written ends it and leaves nothing behind either.
func TestWriteFails(t *testing.T) {
	parent := t.TempDir()
	dst := filepath.Join(parent, "model")
	o := tiny(t, "qwen3_5_moe")
	o.Workers = 3
	first := true
	err := synth.Write(t.Context(), dst, o, func(synth.Progress) {
		if first { // the next layer's file has no place any more
			first = false
			if err := os.RemoveAll(filepath.Join(dst+".partial", "packed_experts")); err != nil {
				t.Error(err)
			}
		}
	})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want an error about a missing folder", err)
	}
	if names := left(t, parent); len(names) > 0 {
		t.Errorf("%v is left, want nothing", names)
	}
}

func TestRefusals(t *testing.T) {
	parent := t.TempDir()
	dst := filepath.Join(parent, "sub", "model")
	o := tiny(t, "qwen3_moe")

	o.FreeSpace = func(dir string) (uint64, error) {
		if dir != filepath.Dir(dst) {
			t.Errorf("free space of %s is asked for, want %s", dir, filepath.Dir(dst))
		}
		return 1 << 20, nil
	}
	var space *synth.SpaceError
	if err := synth.Write(t.Context(), dst, o, nil); !errors.As(err, &space) || space.Free != 1<<20 || space.Need < 1<<20 {
		t.Errorf("on a full disk: %v, want a *SpaceError", err)
	}
	cause := errors.New("no idea")
	o.FreeSpace = func(string) (uint64, error) { return 0, cause }
	if err := synth.Write(t.Context(), dst, o, nil); !errors.Is(err, cause) {
		t.Errorf("where free space cannot be told: %v, want %v", err, cause)
	}
	o.FreeSpace = nil

	var exists *synth.ExistsError
	if err := os.Mkdir(dst+".partial", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := synth.Write(t.Context(), dst, o, nil); !errors.As(err, &exists) || exists.Path != dst+".partial" {
		t.Errorf("beside an unfinished one: %v, want an *ExistsError", err)
	}
	if err := os.Remove(dst + ".partial"); err != nil {
		t.Fatal(err)
	}
	// An empty directory is accepted.
	if err := os.Mkdir(dst, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := synth.Write(t.Context(), dst, o, nil); err != nil {
		t.Errorf("into an empty directory: %v", err)
	}
	before := digest(t, dst)
	if err := synth.Write(t.Context(), dst, o, nil); !errors.As(err, &exists) || exists.Path != dst {
		t.Errorf("over a finished one: %v, want an *ExistsError", err)
	}
	if !maps.Equal(before, digest(t, dst)) {
		t.Error("a refused writing changed the directory")
	}
	file := filepath.Join(parent, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := synth.Write(t.Context(), file, o, nil); !errors.As(err, &exists) {
		t.Errorf("over a file: %v, want an *ExistsError", err)
	}
	if names := left(t, filepath.Dir(dst)); !slices.Equal(names, []string{"model"}) {
		t.Errorf("%v is there in the end, want the model alone", names)
	}
}

func TestLoad(t *testing.T) {
	o := tiny(t, "deepseek_v3")
	o.Layers, o.Vocab, o.Seed, o.Route, o.Topics, o.Run = 3, 400, 1<<63+5, synth.Strong, 5, 7
	m, err := synth.New(o)
	if err != nil {
		t.Fatal(err)
	}
	dir, got := write(t, o)
	if !slices.Equal(got.Chain(400), m.Chain(400)) {
		t.Error("the chain changes from New to Load")
	}
	for token := range int32(400) {
		a, b := got.Routing(token), m.Routing(token)
		for i := range a {
			if a[i].Layer != b[i].Layer || !slices.Equal(a[i].Experts, b[i].Experts) {
				t.Fatalf("token %d: routing changes from New %v to Load %v", token, b[i], a[i])
			}
		}
	}
	record := filepath.Join(dir, synth.RecordName)
	good, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, from, to string }{
		{"another format", "synth 1", "synth 0"},
		{"another number of layers", `"layers": 3`, `"layers": 4`},
		{"no JSON", "{", "<"},
	} {
		bad := strings.Replace(string(good), c.from, c.to, 1)
		if bad == string(good) {
			t.Fatalf("%s: %q is not in %s", c.name, c.from, good)
		}
		if err := os.WriteFile(record, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		var format *synth.FormatError
		if _, err := synth.Load(dir); !errors.As(err, &format) {
			t.Errorf("%s: %v, want a *FormatError", c.name, err)
		}
	}
	var format *synth.FormatError
	if _, err := synth.Load(t.TempDir()); !errors.As(err, &format) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of an empty directory: %v, want a *FormatError about a missing file", err)
	}
}

// TestExpertsOf compares a model that shares the expert files of a model with another route with
// one that was written in full: the bytes must be equal, and the expert files shared. That makes
// sharing right, for every family.
func TestExpertsOf(t *testing.T) {
	ctx := context.Background()
	for name := range tinyShapes {
		t.Run(name, func(t *testing.T) {
			o := tiny(t, name)
			dir := t.TempDir()
			mild, whole, shared := filepath.Join(dir, "mild"), filepath.Join(dir, "whole"), filepath.Join(dir, "shared")
			o.Route = synth.Mild
			if err := synth.Write(ctx, mild, o, nil); err != nil {
				t.Fatal(err)
			}
			o.Route = synth.Uniform
			if err := synth.Write(ctx, whole, o, nil); err != nil {
				t.Fatal(err)
			}
			o.ExpertsOf = mild
			if err := synth.Write(ctx, shared, o, nil); err != nil {
				t.Fatal(err)
			}
			if got, want := digest(t, shared), digest(t, whole); !maps.Equal(got, want) {
				t.Errorf("the files differ: %v, want %v", got, want)
			}
			experts, err := os.ReadDir(filepath.Join(mild, expertfile.DirName))
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range experts {
				a, aerr := os.Stat(filepath.Join(shared, expertfile.DirName, e.Name()))
				b, berr := e.Info()
				if same := os.SameFile(a, b); aerr != nil || berr != nil || same == (e.Name() == expertfile.LayoutName) {
					t.Errorf("%s is shared: %v (%v, %v)", e.Name(), same, aerr, berr)
				}
			}
			o.Seed++
			var bad *synth.OptionError
			if err := synth.Write(ctx, filepath.Join(dir, "other"), o, nil); !errors.As(err, &bad) {
				t.Errorf("another seed: %v, want an OptionError", err)
			}
		})
	}
}

// A directory of another program, a file, and nothing at all are not written by Write.
func TestWrote(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "model.gguf")
	if err := os.WriteFile(file, []byte("GGUF"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, file, filepath.Join(dir, "none")} {
		if wrote, err := synth.Wrote(path); wrote || err != nil {
			t.Errorf("%s: %v, %v", path, wrote, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, synth.RecordName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if wrote, err := synth.Wrote(dir); !wrote || err != nil {
		t.Errorf("with its record: %v, %v", wrote, err)
	}
}
