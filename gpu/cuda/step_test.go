//go:build linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/launch"
	"github.com/moeflux/moeflux-actor/model/quant"
	"github.com/moeflux/moeflux-actor/model/route"
)

// BenchmarkHostStep is what the host does for one decoded step of 48 layers of the shape of
// qwen3-30b-a3b, one Submit a layer, with texts that each grow by a position a step: filling,
// checking and encoding Commands, page tables and graphs. The driver is the tests' own, whose time
// is part of it.
func BenchmarkHostStep(b *testing.B) {
	for _, c := range []struct{ texts, positions int }{{1, 512}, {8, 512}, {32, 512}, {128, 4096}} {
		b.Run(fmt.Sprintf("texts=%d/positions=%d", c.texts, c.positions), func(b *testing.B) { benchHostStep(b, c.texts, c.positions) })
	}
}

const (
	stepLayers, stepHidden, stepHeads, stepKVHeads, stepHeadDim = 48, 2048, 32, 4, 128
	stepInner, stepExperts, stepTopK, stepPage                  = 768, 128, 8, 64
)

// stepModel is the memory of a model whose layers all are the same place.
type stepModel struct {
	weights, at gpu.View
	floats      int // of at that are taken
	table       *gpu.ExpertTable
	texts       int
}

// take returns room for n float32.
func (m *stepModel) take(n int) gpu.View {
	v := m.at.Floats(m.floats)
	m.floats += (n + 63) &^ 63
	return v
}

// matrix is one of the model's.
func (m *stepModel) matrix(rows, cols, bits int) gpu.Matrix {
	f := quant.Affine(bits, 64).In(quant.Panels, quant.PanelRows)
	return gpu.Matrix{Rows: rows, Cols: cols, Format: f, Weight: m.weights, Scales: m.weights, Biases: m.weights}
}

func benchHostStep(b *testing.B, texts, positions int) {
	step := hostSteps(b, newFake(b), texts, positions)
	for range 3 {
		step()
	}
	b.ReportAllocs()
	for b.Loop() {
		step()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "µs/step")
	b.ReportMetric(0, "ns/op")
}

// TestStepsAreGraphs wants steps of growing texts to be launched as graphs. The texts enter new
// chunks of positions at different steps. Scratch memory moves once, when it doubles.
func TestStepsAreGraphs(t *testing.T) {
	f := newFake(t)
	step := hostSteps(t, f, 8, 530)
	for range 3 {
		step()
	}
	single := f.counts["cuLaunchKernel"]
	for range 200 {
		step()
	}
	if n := f.counts["cuLaunchKernel"] - single; n > 20 {
		t.Errorf("%d kernels of 200 steps were launched one by one", n)
	}
}

// hostSteps returns a function that runs one step, in which each text grows by a position. Text t
// starts at position positions-t.
func hostSteps(b testing.TB, f *fake, texts, positions int) (step func()) {
	f.total, f.idle = 8<<30, true
	own, err := newBackend(Config{}, f.driver(), func(int) (*compiler, error) { return fakeCompiler(new(int)), nil })
	must(b, err)
	l, err := launch.New(own)
	must(b, err)
	d := &Device{l, own}
	room := func(n int) gpu.View {
		buf, err := d.NewBuffer(n)
		must(b, err)
		b.Cleanup(buf.Release)
		return gpu.View{Buf: buf}
	}
	b.Cleanup(func() { must(b, d.Close()) })
	m := &stepModel{weights: room(16 << 20), at: room(256 << 20), table: new(gpu.ExpertTable), texts: texts}
	kv := gpu.KVLayout{PageRows: stepPage, Dim: stepKVHeads * stepHeadDim}
	page := room(stepLayers * 2 * kv.PartBytes())
	q, err := d.NewQueue()
	must(b, err)
	b.Cleanup(func() { must(b, q.Close()) })
	done := make(chan error, 1)
	c := new(gpu.Commands)
	submit := func() {
		t, err := q.Submit(c)
		must(b, err)
		t.OnDone(func(err error) { done <- err })
		must(b, <-done)
		c.Reset()
	}
	for range stepExperts {
		m.table.Experts = append(m.table.Experts, gpu.Expert{Gate: m.matrix(stepInner, stepHidden, 4), Up: m.matrix(stepInner, stepHidden, 4), Down: m.matrix(stepHidden, stepInner, 4)})
	}
	m.table.At = m.take(stepExperts * gpu.TableBytes / 4)
	gpu.Encode(c, gpu.Tabulate{Table: m.table})
	submit()
	pages := make([]gpu.Pages, texts)
	segments := make([]gpu.KVSegment, texts)
	at, kept := positions, m.floats
	return func() {
		for t := range pages {
			for pages[t].Len()*stepPage <= at {
				pages[t] = pages[t].Append(page)
			}
			segments[t] = gpu.KVSegment{Row: t, Rows: 1, Pos: at - t, Pages: pages[t]}
		}
		for layer := range stepLayers {
			cache := kv
			cache.KOffset, cache.VOffset = layer*2*kv.PartBytes(), (layer*2+1)*kv.PartBytes()
			m.floats = kept
			m.layer(c, cache, segments)
			submit()
		}
		at++
	}
}

// layer encodes one layer as package dispatch does.
func (m *stepModel) layer(c *gpu.Commands, cache gpu.KVLayout, segments []gpu.KVSegment) {
	const heads, keys = stepHeads * stepHeadDim, stepKVHeads * stepHeadDim
	n := m.texts
	hidden, normed, w, turns := m.take(n*stepHidden), m.take(n*stepHidden), m.take(stepHidden), m.take(n*stepHeadDim)
	qs, ks, vs, out := m.take(n*heads), m.take(n*keys), m.take(n*keys), m.take(n*heads)
	gpu.Encode(c, gpu.MatMul{W: m.matrix(heads, stepHidden, 4), X: normed, Y: qs, Rows: n})
	gpu.Encode(c, gpu.MatMul{W: m.matrix(keys, stepHidden, 4), X: normed, Y: ks, Rows: n})
	gpu.Encode(c, gpu.MatMul{W: m.matrix(keys, stepHidden, 4), X: normed, Y: vs, Rows: n})
	for _, part := range []struct {
		v     gpu.View
		heads int
	}{{qs, stepHeads}, {ks, stepKVHeads}} {
		gpu.Encode(c, gpu.RMSNorm{X: part.v, W: w, Y: part.v, Vectors: n * part.heads, Dim: stepHeadDim, Eps: 1e-6})
		gpu.Encode(c, gpu.Rope{X: part.v, Table: turns, Rows: n, Heads: part.heads, Rotary: stepHeadDim, RowStride: part.heads * stepHeadDim, HeadStride: stepHeadDim})
	}
	gpu.Encode(c, gpu.AppendKV{K: ks, V: vs, Cache: cache, Segments: segments})
	gpu.Encode(c, gpu.Attention{Q: qs, Y: out, QRowStride: heads, QHeadStride: stepHeadDim, Heads: stepHeads, KVHeads: stepKVHeads, HeadDim: stepHeadDim,
		Scale: 0.1, Cache: cache, Segments: segments})
	attended, routed, scratch := m.take(n*stepHidden), m.take(n*stepTopK*stepHidden), m.take(n*stepTopK*2*stepInner)
	gpu.Encode(c, gpu.MatMul{W: m.matrix(stepHidden, heads, 4), X: out, Y: attended, Rows: n})
	gpu.Encode(c, gpu.Add{A: hidden, B: attended, Y: hidden, N: n * stepHidden})
	gpu.Encode(c, gpu.RMSNorm{X: hidden, W: w, Y: normed, Vectors: n, Dim: stepHidden, Eps: 1e-6})
	scores, picks, weights := m.take(n*stepExperts), m.take(n*stepTopK), m.take(n*stepTopK)
	gpu.Encode(c, gpu.MatMul{W: m.matrix(stepExperts, stepHidden, 8), X: normed, Y: scores, Rows: n})
	gpu.Encode(c, gpu.Route{Scores: scores, Picks: picks, Weights: weights, Rows: n, Experts: stepExperts, TopK: stepTopK, Rule: route.Rule{NormTopK: true}})
	gpu.Encode(c, gpu.Experts{X: normed, Y: routed, Scratch: scratch, Rows: n, TopK: stepTopK, Table: m.table, Picks: gpu.List[int32]{At: picks}})
	gpu.Encode(c, gpu.Combine{Routed: routed, Residual: hidden, Y: hidden, Weights: gpu.List[float32]{At: weights}, Rows: n, TopK: stepTopK, Dim: stepHidden})
	gpu.Encode(c, gpu.RMSNorm{X: hidden, W: w, Y: normed, Vectors: n, Dim: stepHidden, Eps: 1e-6})
}
