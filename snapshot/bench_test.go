package snapshot

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
	"unsafe"
)

var (
	benchDir = flag.String("snapshot.dir", "", "where the benchmarks write; empty means a temporary folder")
	benchMiB = flag.Int64("snapshot.mib", 1024, "how large the benchmarks' states are")
)

// blocksOf is a state of real shape: pages of 64 positions of all layers, as the engine's memory
// has it, on a machine that is little-endian as files are.
type blocksOf struct {
	s         *Shape
	index     []int // of each layer among those of its kind
	full      int   // layers of full attention
	pages     [][]byte
	recurrent []byte
}

const benchPageRows = 64

func newBlocks(s *Shape, positions int) *blocksOf {
	b := &blocksOf{s: s, full: count(s, ful)}
	var seen [3]int
	for _, k := range s.Layers {
		b.index = append(b.index, seen[k])
		seen[k]++
	}
	page := b.full*2*s.KVHeads*s.HeadDim + seen[lat]*(s.KVLoraRank+s.RopeDim)
	for n := 0; n < positions; n += benchPageRows {
		b.pages = append(b.pages, floatMemory(benchPageRows*page))
	}
	b.recurrent = floatMemory(seen[lin] * (s.ConvRows*s.ConvDim + s.ValueHeads*s.ValueDim*s.KeyDim))
	return b
}

// floatMemory returns the bytes of n different floats.
func floatMemory(n int) []byte {
	if n == 0 {
		return nil
	}
	f := make([]float32, n)
	for i := range f {
		f[i] = float32(i) * 0.37
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&f[0])), 4*n)
}

// each hands f the state's memory and the caller's that belong together, run by run.
func (b *blocksOf) each(layer int, p Part, first int, rows []byte, f func(state, rows []byte)) {
	s, i := b.s, b.index[layer]
	kv, kept := s.KVHeads*s.HeadDim*4, (s.KVLoraRank+s.RopeDim)*4
	conv, delta := s.ConvRows*s.ConvDim*4, s.ValueHeads*s.ValueDim*s.KeyDim*4
	at, width, stride := 0, kv, kv
	switch p {
	case Convolution:
		f(b.recurrent[i*(conv+delta)+first*s.ConvDim*4:][:len(rows)], rows)
		return
	case Recurrence:
		f(b.recurrent[i*(conv+delta)+conv+first*s.ValueDim*s.KeyDim*4:][:len(rows)], rows)
		return
	case Keys, Values:
		at = (2*i + int(p-Keys)) * kv * benchPageRows
	case Latents:
		at, width, stride = (b.full*2*kv+i*kept)*benchPageRows, s.KVLoraRank*4, kept
	case RotatedKeys:
		at, width, stride = (b.full*2*kv+i*kept)*benchPageRows+s.KVLoraRank*4, s.RopeDim*4, kept
	}
	for len(rows) > 0 {
		page, in := b.pages[first/benchPageRows], first%benchPageRows
		n := min(benchPageRows-in, len(rows)/width)
		if width == stride {
			f(page[at+in*stride:][:n*width], rows)
		} else {
			for r := range n {
				f(page[at+(in+r)*stride:][:width], rows[r*width:])
			}
		}
		rows, first = rows[n*width:], first+n
	}
}

func (b *blocksOf) ReadRows(layer int, p Part, first int, dst []byte) error {
	b.each(layer, p, first, dst, func(state, rows []byte) { copy(rows, state) })
	return nil
}

func (b *blocksOf) WriteRows(layer int, p Part, first int, src []byte) error {
	b.each(layer, p, first, src, func(state, rows []byte) { copy(state, rows) })
	return nil
}

// benchStates are the shapes of models, and as many positions as make a state of the wanted size,
// one at least.
func benchStates() map[string]benchState {
	out := map[string]benchState{
		"hybrid":  {s: hybrid(40, 32, 8192)},
		"softmax": {s: &Shape{Layers: regular(48, 1, ful), KVHeads: 4, HeadDim: 128}},
		"latent":  {s: &Shape{Layers: regular(61, 1, lat), KVHeads: 128, HeadDim: 192, KVLoraRank: 512, RopeDim: 64}},
	}
	for name, st := range out {
		fixed := st.s.bodyBytes(2, 0)
		st.positions = int(max((*benchMiB<<20-fixed)/(st.s.bodyBytes(2, 1)-fixed), 1))
		out[name] = st
	}
	return out
}

type benchState struct {
	s         *Shape
	positions int
}

// mustFile makes the file of a benchmark.
func mustFile(b *testing.B) string {
	dir := *benchDir
	if dir == "" {
		dir = b.TempDir()
	}
	path := filepath.Join(dir, "snapshot.bench")
	b.Cleanup(func() { os.Remove(path) })
	return path
}

// BenchmarkSave writes states to a new file in three ways by turns, so that they meet the same
// machine: the same bytes out of one block of memory, a plain snapshot and a sealed one.
func BenchmarkSave(b *testing.B) {
	for name, st := range benchStates() {
		src := newBlocks(st.s, st.positions)
		o := WriteOptions{Positions: st.positions}
		n, err := Size(st.s, o)
		if err != nil {
			b.Fatal(err)
		}
		flat := make([]byte, n)
		if _, err := Encode(flat, st.s, src, o); err != nil {
			b.Fatal(err)
		}
		ways := []struct {
			name string
			save func(f *os.File) error
		}{
			{"bytes", func(f *os.File) error { _, err := f.Write(flat); return err }},
			{"plain", func(f *os.File) error { _, err := Write(f, st.s, src, o); return err }},
			{"sealed", func(f *os.File) error {
				o := o
				o.Seal = &Seal{Tokens: tokens(st.positions)}
				_, err := Write(f, st.s, src, o)
				return err
			}},
		}
		for _, sync := range []bool{false, true} {
			b.Run(fmt.Sprintf("state=%s/fsync=%v", name, sync), func(b *testing.B) {
				path := mustFile(b)
				times := make([][]time.Duration, len(ways))
				for b.Loop() {
					for i, way := range ways {
						times[i] = append(times[i], saveOnce(b, path, sync, way.save))
					}
				}
				report(b, n, ways[0].name, times[0], times[0])
				for i, way := range ways[1:] {
					report(b, n, way.name, times[i+1], times[0])
				}
			})
		}
	}
}

// report reports a way's median, and what share of the speed of bytes as they lie it has: by
// medians and, since others may be busy on the machine, by the best of each.
func report(b *testing.B, n int64, way string, times, plain []time.Duration) {
	median := func(t []time.Duration) float64 { return slices.Sorted(slices.Values(t))[len(t)/2].Seconds() }
	best := func(t []time.Duration) float64 { return slices.Min(t).Seconds() }
	b.ReportMetric(float64(n)/1e6/median(times), way+"-MB/s")
	b.ReportMetric(100*median(plain)/median(times), way+"-%")
	b.ReportMetric(100*best(plain)/best(times), way+"-best-%")
}

// saveOnce writes a new file and says how long that took.
func saveOnce(b *testing.B, path string, sync bool, save func(f *os.File) error) time.Duration {
	os.Remove(path)
	start := time.Now()
	f, err := os.Create(path)
	if err == nil {
		err = save(f)
	}
	if err == nil && sync {
		err = f.Sync()
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

// BenchmarkEncode writes states to nothing: what the format itself costs, without and with the
// checksums of a seal.
func BenchmarkEncode(b *testing.B) {
	for name, st := range benchStates() {
		src := newBlocks(st.s, st.positions)
		for _, seal := range []*Seal{nil, {}} {
			b.Run(fmt.Sprintf("state=%s/sealed=%v", name, seal != nil), func(b *testing.B) {
				var nowhere null
				o := WriteOptions{Positions: st.positions, Seal: seal}
				n, _ := Size(st.s, o)
				b.SetBytes(n)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Write(nowhere, st.s, src, o); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

type null struct{}

func (null) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkLoad reads files that the page cache holds: the bytes into one block of memory that has
// been touched, and the snapshot into a state.
func BenchmarkLoad(b *testing.B) {
	for name, st := range benchStates() {
		src := newBlocks(st.s, st.positions)
		for _, way := range []string{"bytes", "plain", "sealed", "verify"} {
			b.Run(fmt.Sprintf("state=%s/way=%s", name, way), func(b *testing.B) {
				path := mustFile(b)
				o := WriteOptions{Positions: st.positions}
				if way != "plain" {
					o.Seal = &Seal{}
				}
				saveOnce(b, path, false, func(f *os.File) error { _, err := Write(f, st.s, src, o); return err })
				n, _ := Size(st.s, o)
				flat := bytes.Repeat([]byte{1}, int(n))
				b.SetBytes(n)
				for b.Loop() {
					loadOnce(b, path, n, way, st.s, src, flat)
				}
			})
		}
	}
}

func loadOnce(b *testing.B, path string, n int64, way string, s *Shape, t Target, flat []byte) {
	r, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	if way == "bytes" {
		_, err = r.ReadAt(flat, 0)
	} else {
		var f *File
		if f, err = Open(r, n, s, ReadOptions{Accept: Plain}); err == nil && way == "verify" {
			err = f.Verify()
		} else if err == nil {
			err = f.Fill(t)
		}
	}
	if err != nil {
		b.Fatal(err)
	}
}

// TestBlocks checks the benchmarks' states against those of the other tests.
func TestBlocks(t *testing.T) {
	for name, s := range shapes {
		if name == "mixed" || s.Indexers != nil || s.Window > 0 {
			continue
		}
		src := newBlocks(s, 150)
		var file bytes.Buffer
		if _, err := Write(&file, s, src, WriteOptions{Positions: 150, Seal: &Seal{}}); err != nil {
			t.Fatal(err)
		}
		st, _, err := load(file.Bytes(), s, ReadOptions{}, benchPageRows)
		if err != nil || !bytes.Equal(mustWrite(t, st, WriteOptions{Seal: &Seal{}}), file.Bytes()) {
			t.Errorf("%s: %v", name, err)
		}
		for i, page := range st.pages {
			if s.Layers[0] != lin && !bytes.Equal(src.pages[i][:64], unsafe.Slice((*byte)(unsafe.Pointer(&page[0])), 64)) {
				t.Errorf("%s: page %d lies otherwise", name, i)
			}
		}
	}
}
