package actors_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/testmodel"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/snapshot"
)

// BenchmarkSaveState saves a state of 152 MB, 13 of them recurrent, to a new file, by turns with a
// plain write of the same bytes: "of-write-%" is how fast saving is, 100 being as fast as the
// write. Loading is timed beside it, from the page cache, with the checks.
func BenchmarkSaveState(b *testing.B) {
	spec := testmodel.Spec{
		Arch: model.Qwen35MoE, Hidden: 64, Layers: 8, Vocab: 64, MaxPositions: 32768, Eps: 1e-6, Heads: 2, RopeTheta: 1e6, KVHeads: 2, HeadDim: 256, RotaryDim: 64,
		QKNorm: true, FullEvery: 4, LinearKeyHeads: 16, LinearValueHeads: 32, LinearKeyDim: 128, LinearValueDim: 128, ConvKernel: 4,
		Experts: 4, TopK: 2, ExpertWidth: 32, SharedWidth: 32, NormTopK: true,
	}
	src, dir := b.TempDir(), filepath.Join(b.TempDir(), "packed")
	if err := testmodel.Write(src, spec, 1); err != nil {
		b.Fatal(err)
	}
	if err := convert.Convert(ctx, src, dir, convert.Options{}); err != nil {
		b.Fatal(err)
	}
	e := open(b, actors.Config{Model: dir})
	s := sequence(b, e)
	raw := handmade(e.Model(), 17000)
	if err := load(s, raw, actors.LoadOptions{Accept: snapshot.Plain}); err != nil {
		b.Fatal(err)
	}
	saved := save(b, s, actors.SaveOptions{})
	var write, save, load time.Duration
	b.SetBytes(int64(len(saved)))
	for b.Loop() {
		write += fresh(b, func(f *os.File) error { _, err := f.Write(saved); return err })
		save += fresh(b, func(f *os.File) error { _, err := s.Save(ctx, f, actors.SaveOptions{}); return err })
		began := time.Now()
		if err := s.Load(ctx, bytes.NewReader(saved), int64(len(saved)), actors.LoadOptions{}); err != nil {
			b.Fatal(err)
		}
		load += time.Since(began)
	}
	b.ReportMetric(100*write.Seconds()/save.Seconds(), "of-write-%")
	b.ReportMetric(float64(len(saved))*float64(b.N)/save.Seconds()/1e9, "save-GB/s")
	b.ReportMetric(float64(len(saved))*float64(b.N)/load.Seconds()/1e9, "load-GB/s")
}

// fresh times the writing of a new file.
func fresh(b *testing.B, write func(*os.File) error) time.Duration {
	f, err := os.CreateTemp(b.TempDir(), "state-")
	if err != nil {
		b.Fatal(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	began := time.Now()
	if err := write(f); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}
