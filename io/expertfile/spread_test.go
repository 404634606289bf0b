package expertfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// spreadModel writes experts of three layers into two files, at places that are multiples of 32 as
// in GGUF files. kinds are the types of gate, up and down, one set for each layer in turn. It
// returns where they are and what the records must be.
func spreadModel(t *testing.T, cfg *model.Config, kinds ...[3]string) (of Spread, want map[int][][]byte) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	dir := t.TempDir()
	of = Spread{Files: []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}, Spans: map[int][3]Span{}, Records: map[int]model.ExpertLayout{}}
	var files [2][]byte
	want = map[int][][]byte{}
	most := 0
	for k, layer := range cfg.MoELayers() {
		var formats [3]quant.Format
		for i, kind := range kinds[k%len(kinds)] {
			formats[i] = quant.InBlock(quant.BlockNamed(kind))
		}
		l := model.NewExpertLayout(cfg.HiddenSize, cfg.MoEIntermediateSize, formats[0], formats[1], formats[2])
		of.Records[layer], most = l, max(most, l.Bytes)
		var spans [3]Span
		file := layer % 2
		want[layer] = make([][]byte, cfg.NumExperts)
		for e := range want[layer] {
			want[layer][e] = make([]byte, l.Bytes)
		}
		for i, p := range []model.ExpertPart{l.Gate, l.Up, l.Down} {
			n := p.Format.Bytes(p.Rows, p.Cols)
			files[file] = append(files[file], make([]byte, -len(files[file])&31+32)...)
			spans[i] = Span{File: file, OffsetBytes: int64(len(files[file])), Stride: int64(n + 32*(i%2)), Bytes: n, Block: quant.BlockNamed(kinds[k%len(kinds)][i])}
			for e := range cfg.NumExperts {
				raw := make([]byte, spans[i].Stride)
				for k := range raw {
					raw[k] = byte(r.Uint32())
				}
				files[file] = append(files[file], raw...)
				copy(want[layer][e][p.WeightOffset:], raw[:n])
			}
		}
		of.Spans[layer] = spans
	}
	for layer, l := range of.Records {
		l.Bytes = most
		of.Records[layer] = l
		for e := range want[layer] {
			want[layer][e] = append(want[layer][e], make([]byte, most-len(want[layer][e]))...)
		}
	}
	for i, path := range of.Files {
		write(t, path, files[i])
	}
	return of, want
}

func openSpread(t *testing.T, cfg *model.Config, of Spread) *File {
	t.Helper()
	f, err := OpenSpread(cfg, of)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// Records are gathered from their pieces, of one type or of several, through the page cache and
// past it, and all at once.
func TestSpread(t *testing.T) {
	cfg := small()
	for _, kinds := range [][][3]string{
		{{"BF16", "BF16", "BF16"}}, {{"Q4_0", "MXFP4", "F32"}}, {{"Q8_0", "Q4_1", "IQ4_NL"}, {"Q4_0", "Q4_0", "Q8_0"}, {"F16", "Q5_0", "Q5_1"}},
	} {
		of, want := spreadModel(t, cfg, kinds...)
		for _, direct := range []bool{false, true} {
			f := openSpread(t, cfg, of)
			if direct {
				if err := f.UseDirect(); err != nil {
					t.Logf("through the page cache: %v", err)
				}
			}
			dst := aligned(t, (f.Layout().Bytes+DirectAlign-1)/DirectAlign*DirectAlign)[:f.Layout().Bytes]
			for _, layer := range f.Layers() {
				for e := range f.Experts() {
					if err := f.ReadExpert(layer, e, dst); err != nil {
						t.Fatalf("%v: %v", kinds, err)
					}
					if l := f.LayoutOf(layer); !bytes.Equal(dst[:l.Used()], want[layer][e][:l.Used()]) {
						t.Fatalf("%v: layer %d expert %d differs (direct %v)", kinds, layer, e, direct)
					}
				}
				m, err := f.Map(layer)
				if err != nil || !bytes.Equal(m, bytes.Join(want[layer], nil)) {
					t.Errorf("%v: layer %d in memory differs: %v", kinds, layer, err)
				}
				if again, err := f.Map(layer); err != nil || &again[0] != &m[0] {
					t.Errorf("layer %d is in memory twice: %v", layer, err)
				}
			}
			if !f.Spread() || f.Path(f.Layers()[0]) == "" || f.Path(99) != "" {
				t.Errorf("paths %q, %q", f.Path(f.Layers()[0]), f.Path(99))
			}
			if err := f.LoadSums(); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("checksums: %v", err)
			}
		}
	}
}

// Many reads at once get memory of their own.
func TestSpreadConcurrent(t *testing.T) {
	cfg := small()
	of, want := spreadModel(t, cfg, [3]string{"Q8_0", "Q8_0", "Q8_0"})
	f := openSpread(t, cfg, of)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			dst := make([]byte, f.Layout().Bytes)
			for range 20 {
				for _, layer := range f.Layers() {
					for e := range f.Experts() {
						if err := f.ReadExpert(layer, e, dst); err != nil || !bytes.Equal(dst, want[layer][e]) {
							t.Errorf("layer %d expert %d: %v", layer, e, err)
							return
						}
					}
				}
			}
		})
	}
	all.Wait()
}

// A file that was cut short, or does not hold what is said of it, is an error that names it.
func TestSpreadErrors(t *testing.T) {
	cfg := small()
	of, _ := spreadModel(t, cfg, [3]string{"Q8_0", "Q8_0", "Q8_0"})
	f := openSpread(t, cfg, of)
	dst := make([]byte, f.Layout().Bytes)
	layer := f.Layers()[0]
	var bad *ReadError
	for _, err := range []error{f.ReadExpert(99, 0, dst), f.ReadExpert(layer, -1, dst), f.ReadExpert(layer, f.Experts(), dst), f.ReadExpert(layer, 0, dst[1:])} {
		if !errors.As(err, &bad) {
			t.Errorf("got %v", err)
		}
	}
	span := of.Spans[layer][2]
	if err := os.Truncate(of.Files[span.File], span.OffsetBytes+10); err != nil {
		t.Fatal(err)
	}
	if err := f.ReadExpert(layer, 0, dst); !errors.As(err, &bad) || bad.Path != of.Files[span.File] || bad.OffsetBytes != span.OffsetBytes || bad.GotLen != 10 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a file cut short: %v", err)
	}
	if _, err := f.Map(layer); err == nil {
		t.Error("a layer that cannot be read is in memory")
	}
	if _, err := OpenSpread(cfg, of); err == nil || !strings.Contains(err.Error(), "go past the end of "+of.Files[span.File]) {
		t.Errorf("opening it: %v", err)
	}
	of.Files[1] = filepath.Join(t.TempDir(), "none")
	if _, err := OpenSpread(cfg, of); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	for name, change := range map[string]func(*Span){
		"bytes": func(x *Span) { x.Bytes-- }, "file": func(x *Span) { x.File = 7 }, "block": func(x *Span) { x.Block = nil },
		"offset": func(x *Span) { x.OffsetBytes = -1 }, "stride": func(x *Span) { x.Stride = 1 }, "far": func(x *Span) { x.OffsetBytes = math.MaxInt64 - 5 },
	} {
		of, _ := spreadModel(t, cfg, [3]string{"Q8_0", "Q8_0", "Q8_0"})
		spans := of.Spans[layer]
		change(&spans[1])
		of.Spans[layer] = spans
		if _, err := OpenSpread(cfg, of); err == nil || !strings.Contains(err.Error(), "up_proj") {
			t.Errorf("%s: %v", name, err)
		}
	}
	of, _ = spreadModel(t, cfg, [3]string{"BF16", "F32", "BF16"})
	for l, r := range of.Records {
		r.Up.Format = quant.BF16
		of.Records[l] = r
	}
	if _, err := OpenSpread(cfg, of); err == nil {
		t.Error("F32 is taken for BF16")
	}
}

// BenchmarkReadExpert compares an expert in a GGUF file, in three places, with one in a pack, past
// the page cache where the file system allows that.
func BenchmarkReadExpert(b *testing.B) {
	cfg := small()
	cfg.HiddenSize, cfg.MoEIntermediateSize, cfg.NumExperts = 2048, 768, 32
	q4k := quant.InBlock(quant.BlockNamed("Q4_K"))
	l := model.NewExpertLayout(cfg.HiddenSize, cfg.MoEIntermediateSize, q4k, q4k, q4k)
	spread := Spread{Files: []string{filepath.Join(b.TempDir(), "experts.gguf")}, Spans: map[int][3]Span{}, Records: map[int]model.ExpertLayout{}}
	n, at := l.Used()/3, int64(32)
	for _, layer := range cfg.MoELayers() {
		var spans [3]Span
		for i := range spans {
			spans[i] = Span{OffsetBytes: at, Stride: int64(n), Bytes: n, Block: q4k.Block()}
			at += int64(n * cfg.NumExperts)
		}
		spread.Spans[layer], spread.Records[layer] = spans, l
	}
	random := make([]byte, at)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(random)
	if err := os.WriteFile(spread.Files[0], random, 0o600); err != nil {
		b.Fatal(err)
	}
	dir := filepath.Join(b.TempDir(), DirName)
	if err := os.Mkdir(dir, 0o700); err != nil {
		b.Fatal(err)
	}
	for _, layer := range cfg.MoELayers() {
		if err := os.WriteFile(filepath.Join(dir, LayerName(layer)), random[:l.Bytes*cfg.NumExperts], 0o600); err != nil {
			b.Fatal(err)
		}
	}
	layout, err := Describe(cfg, l).MarshalJSON()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, LayoutName), layout, 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
	inPlace, err := OpenSpread(cfg, spread)
	if err != nil {
		b.Fatal(err)
	}
	packed, err := Open(filepath.Dir(dir), cfg)
	if err != nil {
		b.Fatal(err)
	}
	for name, f := range map[string]*File{"gguf": inPlace, "pack": packed} {
		defer f.Close()
		if err := f.UseDirect(); err != nil {
			b.Logf("%s: %v", name, err)
		}
	}
	for turn := range 3 {
		for _, c := range []struct {
			name string
			f    *File
		}{{"gguf", inPlace}, {"pack", packed}} {
			b.Run(fmt.Sprintf("%s/turn=%d", c.name, turn), func(b *testing.B) {
				b.SetBytes(int64(l.Bytes))
				dst := aligned(b, l.Bytes)
				for i := 0; b.Loop(); i++ {
					layer := cfg.MoELayers()[i%len(cfg.MoELayers())]
					if err := c.f.ReadExpert(layer, i*7%cfg.NumExperts, dst); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
