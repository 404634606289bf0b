package host

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/membw"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// benchFloats returns a buffer of n random float32.
func benchFloats(b testing.TB, d *Device, n int) gpu.View {
	b.Helper()
	v := benchBytes(b, d, 4*n)
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	f := gpu.Floats(v.Buf.Bytes(), n)
	for i := range f {
		f[i] = float32(rng.NormFloat64()) / 16
	}
	return v
}

func benchBytes(b testing.TB, d *Device, n int) gpu.View {
	b.Helper()
	buf, err := d.NewBuffer(n)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(buf.Release)
	return gpu.View{Buf: buf}
}

// benchMatrix returns a matrix with random codes and small scales.
func benchMatrix(b testing.TB, d *Device, rows, cols int, f quant.Format) gpu.Matrix {
	b.Helper()
	m := gpu.Matrix{Rows: rows, Cols: cols, Format: f, Weight: benchBytes(b, d, f.WeightBytes(rows, cols))}
	rng, w := rand.New(rand.NewPCG(2, 3)), m.Weight.Buf.Bytes()
	const different = 1 << 20 // the rest repeats it
	for i := range min(len(w), different) {
		w[i] = byte(rng.Uint32())
		if !f.Codes() && i%2 == 1 {
			w[i] = 0x3c // elements around 0.01
		}
	}
	for i := different; i < len(w); i += different {
		copy(w[i:], w[:different])
	}
	if block := f.Block(); block != nil {
		smallScales(block, w)
	}
	if f.Codes() {
		m.Scales = benchBytes(b, d, f.ScaleBytes(rows, cols))
		for i := range m.Scales.Buf.Bytes() {
			m.Scales.Buf.Bytes()[i] = 0x78 // 2^-7
		}
	}
	if n := f.BiasBytes(rows, cols); n > 0 {
		m.Biases = benchBytes(b, d, n)
	}
	if f.Affine() {
		for i := 1; i < m.Scales.Buf.Len(); i += 2 {
			m.Scales.Buf.Bytes()[i-1], m.Scales.Buf.Bytes()[i], m.Biases.Buf.Bytes()[i] = 0, 0x3c, 0xbd
		}
	}
	return m
}

var q4 = quant.Affine(4, 64)

// threadCounts returns one and all.
func threadCounts() []int {
	if n := runtime.GOMAXPROCS(0); n > 1 {
		return []int{1, n}
	}
	return []int{1}
}

// eachThreads runs a benchmark with one thread and with all.
func eachThreads(b *testing.B, f func(b *testing.B, d *Device)) { eachThreadsOf(b, F32, f) }

// eachThreadsOf is eachThreads for a kind of activations. MOEFLUX_CPU names the variant.
func eachThreadsOf(b *testing.B, a Activations, f func(b *testing.B, d *Device)) {
	for _, n := range threadCounts() {
		b.Run(fmt.Sprintf("threads=%d", n), func(b *testing.B) {
			f(b, openConfig(b, Config{Threads: n, Activations: a, Variant: os.Getenv("MOEFLUX_CPU")}))
		})
	}
}

// measure runs c repeatedly and reports bytes a second, on average and in the best run, which other
// work on the machine disturbs less.
func measure(b *testing.B, d *Device, c *gpu.Commands, bytes int) (best time.Duration) {
	b.Helper()
	if err := d.Run(c); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	best = math.MaxInt64
	for b.Loop() {
		began := time.Now()
		if err := d.Run(c); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(began))
	}
	b.ReportMetric(float64(bytes)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
	b.ReportMetric(float64(bytes)/best.Seconds()/1e9, "best-GB/s")
	return best
}

// eachKind runs a benchmark for each variant, kind of activations and number of threads.
func eachKind(b *testing.B, f func(b *testing.B, d *Device)) {
	for _, variant := range Variants() {
		for _, a := range []Activations{F32, Int8} {
			for _, n := range threadCounts() {
				b.Run(fmt.Sprintf("variant=%s/x=%v/threads=%d", variant, a, n), func(b *testing.B) {
					f(b, openConfig(b, Config{Threads: n, Variant: variant, Activations: a}))
				})
			}
		}
	}
}

// BenchmarkMatMul multiplies a matrix that stays in the second- and third-level caches.
func BenchmarkMatMul(b *testing.B) {
	q4p := q4
	q4p.Layout = quant.Panels
	formats := []quant.Format{q4p, q4, quant.Affine(8, 64).In(quant.Panels, quant.PanelRows),
		quant.Affine(2, 64).In(quant.Panels, quant.PanelRows), quant.MXFP4.In(quant.Panels, quant.PanelRows), quant.BF16, quant.F32}
	for _, f := range quant.Formats() {
		switch f.String() {
		case "q4fg64", "q8fg64", "fp8g128", "nvfp4":
			formats = append(formats, f.In(quant.Panels, quant.PanelRows))
		}
	}
	for _, f := range formats {
		for _, rows := range []int{1, 2, 3, 4, 5, 8, 16, 32, 64, 128} {
			b.Run(fmt.Sprintf("format=%v/rows=%d", f, rows), func(b *testing.B) {
				eachKind(b, func(b *testing.B, d *Device) {
					const out, in = 2048, 2048
					var c gpu.Commands
					gpu.Encode(&c, gpu.MatMul{W: benchMatrix(b, d, out, in, f), X: benchFloats(b, d, rows*in),
						Y: benchFloats(b, d, rows*out), Rows: rows})
					best := measure(b, d, &c, f.Bytes(out, in))
					b.ReportMetric(float64(rows*out*in)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
					b.ReportMetric(float64(rows*out*in)/best.Seconds()/1e9, "best-GMAC/s")
				})
			})
		}
	}
}

// BenchmarkWalk multiplies one matrix after the other, 1 GiB of them, as decoding does with a model
// in memory.
func BenchmarkWalk(b *testing.B) {
	for _, layout := range []quant.Layout{quant.Panels, quant.Rows} {
		f := q4
		f.Layout = layout
		for _, shape := range [][2]int{{2048, 4096}, {2048, 768}, {768, 2048}} {
			out, in := shape[0], shape[1]
			for _, rows := range []int{1, 8} {
				b.Run(fmt.Sprintf("format=%v/out=%d/in=%d/rows=%d", f, out, in, rows), func(b *testing.B) {
					eachKind(b, func(b *testing.B, d *Device) {
						n := (1 << 30) / f.Bytes(out, in)
						all := benchMatrix(b, d, n*out, in, f)
						x, y := benchFloats(b, d, rows*in), benchFloats(b, d, rows*out)
						ops := make([]gpu.Commands, n)
						for i := range ops {
							w := gpu.Matrix{Rows: out, Cols: in, Format: f, Weight: all.Weight, Scales: all.Scales, Biases: all.Biases}
							w.Weight.Offset, w.Scales.Offset, w.Biases.Offset = i*f.WeightBytes(out, in), i*f.ScaleBytes(out, in), i*f.ScaleBytes(out, in)
							gpu.Encode(&ops[i], gpu.MatMul{W: w, X: x, Y: y, Rows: rows})
						}
						walk(b, d, ops, f.Bytes(out, in))
					})
				})
			}
		}
	}
}

// walk runs all ops in turn, repeatedly. It reports bytes a second, each op having the same number:
// on average, and in the fastest tenth of the ops, which other work on the machine disturbs less.
// It reports both as a share of the memory's bandwidth, too.
func walk(b *testing.B, d *Device, ops []gpu.Commands, bytes int) {
	b.Helper()
	var took []time.Duration
	for b.Loop() {
		took = took[:0]
		for i := range ops {
			began := time.Now()
			if err := d.Run(&ops[i]); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(began))
		}
	}
	slices.Sort(took)
	limit, err := membw.Measure(b.Context(), membw.Config{Threads: d.Threads()})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(100*float64(bytes)/took[len(took)/2].Seconds()/limit.Median, "median-of-bandwidth-%")
	b.ReportMetric(100*float64(bytes)/took[len(took)/10].Seconds()/limit.Max, "quick-of-most-bandwidth-%")
	b.ReportMetric(float64(bytes*len(ops))*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
	b.ReportMetric(float64(bytes)/took[len(took)/10].Seconds()/1e9, "quick-GB/s")
	b.ReportMetric(float64(bytes)/took[len(took)/2].Seconds()/1e9, "median-GB/s")
}

// BenchmarkExperts runs the experts of a layer of qwen3-30b-a3b and of qwen3.5-35b-a3b: eight of
// them that every row takes, so that each multiplies all rows at once, or all of them, of which
// each row takes eight at random.
func BenchmarkExperts(b *testing.B) {
	for _, layer := range []struct{ inner, experts int }{{768, 8}, {512, 8}, {768, 128}, {512, 256}} {
		rows := []int{1, 2, 3, 4, 5, 8, 16, 32, 64, 128}
		if layer.experts > 8 {
			rows = []int{1, 8, 32, 128, 512}
		}
		for _, rows := range rows {
			b.Run(fmt.Sprintf("inner=%d/experts=%d/rows=%d", layer.inner, layer.experts, rows), func(b *testing.B) {
				eachKind(b, func(b *testing.B, d *Device) { benchExperts(b, d, layer.inner, layer.experts, rows) })
			})
		}
	}
}

func benchExperts(b *testing.B, d *Device, inner, experts, rows int) {
	const dim, topK = 2048, 8
	f := q4
	f.Layout = quant.Panels
	op := gpu.Experts{X: benchFloats(b, d, rows*dim), Y: benchFloats(b, d, rows*topK*dim),
		Scratch: benchFloats(b, d, rows*topK*2*inner), Rows: rows, TopK: topK, Table: new(gpu.ExpertTable)}
	for range experts {
		op.Table.Experts = append(op.Table.Experts, gpu.Expert{Gate: benchMatrix(b, d, inner, dim, f), Up: benchMatrix(b, d, inner, dim, f),
			Down: benchMatrix(b, d, dim, inner, f)})
	}
	rng, picked := rand.New(rand.NewPCG(1, 2)), map[int]bool{}
	for range rows {
		for _, e := range rng.Perm(experts)[:topK] {
			op.Picks.Host = append(op.Picks.Host, int32(e))
			picked[e] = true
		}
	}
	var c gpu.Commands
	gpu.Encode(&c, op)
	best := measure(b, d, &c, len(picked)*3*f.Bytes(inner, dim))
	b.ReportMetric(float64(rows*topK*3*inner*dim)/best.Seconds()/1e9, "best-GMAC/s")
}

// BenchmarkQueue measures the time from Submit to the callback of OnDone for almost no work.
func BenchmarkQueue(b *testing.B) {
	eachThreads(b, func(b *testing.B, d *Device) {
		q, err := d.NewQueue()
		if err != nil {
			b.Fatal(err)
		}
		defer q.Close()
		var c gpu.Commands
		gpu.Encode(&c, gpu.Fill{Dst: benchFloats(b, d, 16), Bytes: 64})
		done := make(chan error, 1)
		f := func(err error) { done <- err }
		b.ReportAllocs()
		for b.Loop() {
			ticket, err := q.Submit(&c)
			if err != nil {
				b.Fatal(err)
			}
			ticket.OnDone(f)
			<-done
		}
		b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N), "us/trip")
	})
}

// BenchmarkDispatch measures what an operation costs that has next to nothing to compute.
func BenchmarkDispatch(b *testing.B) {
	d := openConfig(b, Config{Threads: 1})
	v := benchFloats(b, d, 16)
	var c gpu.Commands
	for range 64 {
		gpu.Encode(&c, gpu.Add{A: v, B: v, Y: v, N: 1})
		gpu.Encode(&c, gpu.RMSNorm{X: v, Y: v, Vectors: 1, Dim: 1, Eps: 1e-6})
		gpu.Encode(&c, gpu.Fill{Dst: v, Bytes: 4})
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := d.Run(&c); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.Len()), "ns/operation")
}
