package convert_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/durable"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/weights"
)

// A pack in either layout, converted to either layout, equals the conversion of its checkpoint in
// every byte, including checksums and names.
func TestRepack(t *testing.T) {
	for _, name := range fixtures.All() {
		for _, o := range []convert.Options{{}, {Bits: 4}, {Bits: 8, ExpertBits: 2}} {
			run := fmt.Sprintf("%s/%d,%d", name, o.Bits, o.ExpertBits)
			if !testenv.Share(t, run, 6) {
				continue
			}
			t.Run(run, func(t *testing.T) {
				src := fixtures.Dir(t, name)
				rows := o
				rows.RowOrder = true
				direct := map[bool]string{false: mustConvert(t, src, o), true: mustConvert(t, src, rows)}
				for from, packed := range direct {
					for to, want := range direct {
						got := mustConvert(t, packed, convert.Options{RowOrder: to})
						sameTree(t, got, want)
						if err := convert.Verify(context.Background(), got); err != nil {
							t.Errorf("from rows: %v, to rows: %v: %v", from, to, err)
						}
					}
				}
			})
		}
	}
}

// A directory that another program packed, without layout, checksums or bits, can be converted to
// panels once it has the checkpoint's small files.
func TestRepackOthers(t *testing.T) {
	for _, moeflux := range []bool{false, true} {
		src := fixtures.Legacy(t, fixtures.Qwen35MoEQ4, moeflux)
		dst := filepath.Join(t.TempDir(), "pack")
		if err := convert.Convert(context.Background(), src, dst, convert.Options{}); err == nil || !strings.Contains(err.Error(), "without config.json") {
			t.Fatalf("moeflux: %v: got %v, want that config.json is missing", moeflux, err)
		}
		text := src
		if moeflux {
			text = filepath.Join(src, "mlx")
			check(t, os.MkdirAll(text, 0o755))
		}
		checkpoint := fixtures.Dir(t, fixtures.Qwen35MoEQ4)
		check(t, os.CopyFS(text, os.DirFS(checkpoint)))
		shards, err := filepath.Glob(filepath.Join(text, "*.safetensors*"))
		check(t, err)
		for _, path := range shards {
			check(t, os.Remove(path))
		}
		var warnings []string
		got := mustConvert(t, src, convert.Options{Progress: func(p convert.Progress) {
			if p.Warning != "" {
				warnings = append(warnings, p.Warning)
			}
		}})
		if len(warnings) != 1 || !strings.Contains(warnings[0], "no checksums.json") {
			t.Errorf("moeflux: %v: warnings %q, want one of checksums", moeflux, warnings)
		}
		want := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
		g, w := openPack(t, got), openPack(t, want)
		if g.x.Layout() != w.x.Layout() {
			t.Errorf("moeflux: %v: records %+v, want %+v", moeflux, g.x.Layout(), w.x.Layout())
		}
		for _, layer := range w.x.Layers() {
			for e := range w.x.Experts() {
				sameBytes(t, fmt.Sprintf("layer %d expert %d", layer, e), g.record(layer, e), w.record(layer, e))
			}
		}
		records := filepath.Join(expertfile.DirName, expertfile.SumsName)
		sums, err := os.ReadFile(filepath.Join(got, records))
		check(t, err)
		whole, err := os.ReadFile(filepath.Join(want, records))
		check(t, err)
		sameBytes(t, records, sums, whole)
		for name, d := range w.w.Manifest().Tensors {
			is := g.w.Manifest().Tensors[name]
			if is.Layout != d.Layout || is.Bits != d.Bits {
				t.Errorf("%s: %s with %d bits, want %s with %d", name, is.Layout, is.Bits, d.Layout, d.Bits)
				continue
			}
			sameBytes(t, name, g.w.Mapping()[is.Offset:][:is.Size], w.w.Mapping()[d.Offset:][:d.Size])
		}
	}
}

// Bits other than those of the packed codes are refused, more or fewer. The same bits are accepted.
func TestRepackBits(t *testing.T) {
	four, eight, none := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), mustConvert(t, fixtures.Dir(t, fixtures.Qwen35MoEBF16), convert.Options{Bits: 8}), fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0)
	for _, c := range []struct {
		src  string
		o    convert.Options
		have int // -1: it is done
	}{
		{four, convert.Options{Bits: 4}, -1}, {four, convert.Options{ExpertBits: 4}, -1}, {four, convert.Options{Bits: 8}, 4}, {four, convert.Options{ExpertBits: 2}, 4},
		{four, convert.Options{ExpertBits: 8}, 4}, {eight, convert.Options{Bits: 4}, 8}, {eight, convert.Options{Bits: 8, ExpertBits: 8}, -1},
		{eight, convert.Options{Bits: 8, ExpertBits: 4}, 8}, {none, convert.Options{Bits: 4}, 0}, {none, convert.Options{ExpertBits: 2}, 0}, {none, convert.Options{RowOrder: true}, -1},
	} {
		dst := filepath.Join(t.TempDir(), "pack")
		err := convert.Convert(context.Background(), c.src, dst, unsafely(c.o))
		var bits *convert.BitsError
		switch {
		case c.have < 0 && err != nil:
			t.Errorf("%+v: %v", c.o, err)
		case c.have >= 0 && (!errors.As(err, &bits) || bits.Have != c.have || bits.Dir != c.src || !strings.Contains(err.Error(), "convert the checkpoint")):
			t.Errorf("%+v: got %v, want a *BitsError of %d bits", c.o, err, c.have)
		case c.have >= 0:
			gone(t, dst)
			gone(t, dst+".partial")
		}
	}
}

// Repacking that is stopped at any point, by the caller or a full disk, leaves nothing that looks
// complete. When continued, it gives the bytes of an uninterrupted run. If the source changes, it
// starts over.
func TestRepackStopsAndResumes(t *testing.T) {
	src, want := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), fixtures.PackedRows(t, fixtures.Qwen35MoEQ4, 0)
	o := convert.Options{RowOrder: true}
	steps := 0
	count := o
	count.Progress = func(convert.Progress) { steps++ }
	mustConvert(t, src, count)
	for i := 0; i < steps; i += steps/12 + 1 {
		dst := filepath.Join(t.TempDir(), "pack")
		ctx, cancel := context.WithCancelCause(context.Background())
		why, calls := fmt.Errorf("stopped at call %d of %d", i, steps), 0
		stopping := o
		stopping.Progress = func(convert.Progress) {
			if calls++; calls > i {
				cancel(why)
			}
		}
		if err := convert.Convert(ctx, src, dst, unsafely(stopping)); !errors.Is(err, why) && !(calls == steps && err == nil) {
			t.Fatalf("stopped at %d: got %v", i, err)
		} else if err == nil {
			continue
		}
		notWhole(t, dst)
		check(t, convert.Convert(context.Background(), src, dst, unsafely(o)))
		sameTree(t, dst, want)
	}
	for _, room := range []int{0, 1000, 450_000, 2_200_000, 2_430_000} {
		dst := filepath.Join(t.TempDir(), "pack")
		d := &disk{left: room}
		err := convert.Convert(context.Background(), src, dst, o.WithCreate(d.create))
		if !is[*convert.WriteError](err) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "disk is full") {
			t.Fatalf("room for %d bytes: got %v, want a *WriteError of ENOSPC", room, err)
		}
		notWhole(t, dst)
		check(t, convert.Convert(context.Background(), src, dst, unsafely(o)))
		sameTree(t, dst, want)
	}
	small := o
	small.FreeSpace = func(string) (uint64, error) { return 1_000_000, nil }
	dst := filepath.Join(t.TempDir(), "pack")
	if err := convert.Convert(context.Background(), src, dst, small); !is[*convert.SpaceError](err) {
		t.Errorf("a small disk: got %v, want a *SpaceError", err)
	}
	gone(t, dst+".partial")
	// Half a conversion of another source with the same options is not continued.
	dst = halfway(t, mustConvert(t, fixtures.Dir(t, fixtures.Qwen35MoEQ4), convert.Options{ExpertBits: 2}), o)
	check(t, convert.Convert(context.Background(), src, dst, unsafely(o)))
	sameTree(t, dst, want)
}

// Damage in the source is reported, by the checksum of the record or else of the file, and does not
// get new checksums.
func TestRepackDamaged(t *testing.T) {
	const layer, records = "packed_experts/layer_01.bin", expertfile.DirName + "/" + expertfile.SumsName
	sum := func(file string) func(error) bool {
		return func(err error) bool {
			var sum *convert.ChecksumError
			return errors.As(err, &sum) && sum.File == file
		}
	}
	record := func(err error) bool {
		var read *expertfile.ReadError
		return errors.As(err, &read) && is[*expertfile.SumError](err) && strings.HasSuffix(read.Path, "src/"+layer) && read.Layer == 1 && read.Expert == 8
	}
	for _, c := range []struct {
		file string
		gone []string
		told func(error) bool
	}{
		{layer, nil, record}, {layer, []string{convert.ChecksumsName}, record}, {layer, []string{records}, sum(layer)},
		{records, nil, is[*expertfile.SumsError]}, {"model_weights.bin", nil, sum("model_weights.bin")}, {"tokenizer.json", nil, sum("tokenizer.json")},
	} {
		src := ownPack(t)
		for _, file := range c.gone {
			check(t, os.Remove(filepath.Join(src, file)))
		}
		path := filepath.Join(src, c.file)
		raw, err := os.ReadFile(path)
		check(t, err)
		raw[len(raw)/2] ^= 1 // of 16 experts the one with index 8
		writeFile(t, path, raw)
		dst := filepath.Join(t.TempDir(), "pack")
		if err := convert.Convert(context.Background(), src, dst, unsafely(convert.Options{RowOrder: true})); !c.told(err) {
			t.Errorf("%s, without %v: got %v, want an error about it", c.file, c.gone, err)
		}
		gone(t, dst)
	}
}

// ownPack returns a writable copy of a packed model, named src.
func ownPack(t *testing.T) string {
	src := filepath.Join(t.TempDir(), "src")
	check(t, os.CopyFS(src, os.DirFS(fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0))))
	for file := range tree(t, src) {
		check(t, os.Chmod(filepath.Join(src, file), 0o644))
	}
	return src
}

// A source without checksums of its records gets those of a conversion from the checkpoint, whether
// it has checksums of files or not.
func TestRepackMakesRecordSums(t *testing.T) {
	want := fixtures.PackedRows(t, fixtures.Qwen35MoEQ4, 0)
	for _, without := range [][]string{{expertfile.SumsName}, {expertfile.SumsName, "../" + convert.ChecksumsName}} {
		src := ownPack(t)
		for _, name := range without {
			check(t, os.Remove(filepath.Join(src, expertfile.DirName, name)))
		}
		sameTree(t, mustConvert(t, src, convert.Options{RowOrder: true}), want)
	}
	src := ownPack(t)
	check(t, os.Remove(filepath.Join(src, convert.ChecksumsName)))
	var warnings []string
	sameTree(t, mustConvert(t, src, convert.Options{RowOrder: true, Progress: func(p convert.Progress) {
		if p.Warning != "" {
			warnings = append(warnings, p.Warning)
		}
	}}), want)
	if len(warnings) != 1 || !strings.Contains(warnings[0], "damage there, but for experts, goes unnoticed") {
		t.Errorf("warnings %q, want one of all but experts", warnings)
	}
}

// If either kind of conversion is stopped after the layers, before the checksums of the records, it
// computes them from the files when it continues.
func TestRecordSumsResume(t *testing.T) {
	packed, want := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), fixtures.PackedRows(t, fixtures.Qwen35MoEQ4, 0)
	for _, src := range []string{packed, fixtures.Dir(t, fixtures.Qwen35MoEQ4)} {
		o, dst := convert.Options{RowOrder: true}, filepath.Join(t.TempDir(), "pack")
		full := func(path string) (durable.File, error) {
			if strings.Contains(path, expertfile.SumsName) {
				return (&disk{left: 100}).create(path)
			}
			return os.Create(path)
		}
		var failed *convert.WriteError
		if err := convert.Convert(context.Background(), src, dst, o.WithCreate(full)); !errors.As(err, &failed) || !errors.Is(err, syscall.ENOSPC) || filepath.Base(failed.Path) != expertfile.SumsName {
			t.Fatalf("got %v, want a *WriteError of %s", err, expertfile.SumsName)
		}
		notWhole(t, dst)
		ctx, cancel := context.WithCancelCause(context.Background())
		why := errors.New("stopped while the layers are read")
		stop := func(path string) (durable.File, error) {
			if strings.Contains(path, expertfile.SumsName) {
				cancel(why)
			}
			return os.Create(path)
		}
		if err := convert.Convert(ctx, src, dst, o.WithCreate(stop)); !errors.Is(err, why) || !strings.Contains(err.Error(), "interrupted") {
			t.Fatalf("got %v, want that it was interrupted", err)
		}
		notWhole(t, dst)
		check(t, convert.Convert(context.Background(), src, dst, unsafely(o)))
		sameTree(t, dst, want)
	}
}

// Directories that cannot be repacked are refused before anything is written.
func TestRepackRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(dir string)
		want string
	}{
		"synthetic": {func(dir string) { writeFile(t, filepath.Join(dir, "synth.json"), []byte("{}")) }, "in the other layout"},
		"tensors that lie in each other": {func(dir string) {
			path := filepath.Join(dir, weights.ManifestName)
			var m weights.Manifest
			readJSON(t, path, &m)
			d := m.Tensors["model.norm.weight"]
			d.Offset = m.Tensors["model.layers.0.input_layernorm.weight"].Offset
			m.Tensors["model.norm.weight"] = d
			raw, err := json.Marshal(m)
			check(t, err)
			writeFile(t, path, raw)
		}, "inside"},
		"a matrix that is missing": {func(dir string) {
			path := filepath.Join(dir, weights.ManifestName)
			var m weights.Manifest
			readJSON(t, path, &m)
			for _, part := range []string{".weight", ".scales", ".biases"} {
				delete(m.Tensors, "model.layers.0.mlp.gate"+part)
			}
			raw, err := json.Marshal(m)
			check(t, err)
			writeFile(t, path, raw)
		}, "model.layers.0.mlp.gate.weight"},
		"checksums that cannot be read": {func(dir string) { writeFile(t, filepath.Join(dir, convert.ChecksumsName), []byte("{")) }, "checksums.json"},
	} {
		src := ownPack(t)
		c.harm(src)
		dst := filepath.Join(t.TempDir(), "pack")
		if err := convert.Convert(context.Background(), src, dst, convert.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error about %q", name, err, c.want)
		}
		gone(t, dst)
		gone(t, dst+".partial")
	}
}
