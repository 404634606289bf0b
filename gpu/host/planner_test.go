package host

import (
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// fetched is what threads asked for: lines by thread.
type fetched struct {
	thread int
	lines  [][]uintptr
}

// plannerOf returns a planner over a pool of n threads that ask for nothing but write down what they would.
func plannerOf(t *testing.T, threads int) (*planner, *fetched) {
	t.Helper()
	f := &fetched{lines: make([][]uintptr, threads)}
	k := portable
	p := newPool(threads-1, nil) // its own threads must not fetch meanwhile
	t.Cleanup(p.close)
	idle := &pool{parts: p.parts, workers: p.workers}
	idle.ahead = ahead{parts: make([]aheadPart, threads), lines: func(at uintptr, n int) {
		for i := range n {
			f.lines[f.thread] = append(f.lines[f.thread], at+uintptr(i*lineBytes))
		}
	}}
	return &planner{kernels: &k, pool: idle}, f
}

// take lets each thread fetch its part.
func (f *fetched) take(p *pool) {
	for f.thread = range f.lines {
		f.lines[f.thread] = nil
		for own := new(fetcher); p.ahead.step(own, f.thread); {
		}
	}
}

// memoryOf returns where codes, scales and biases of a row of a matrix lie.
func memoryOf(m *gpu.Matrix, row int) []uintptr {
	at := func(v gpu.View, bytes int) uintptr {
		return uintptr(unsafe.Pointer(&v.Buf.Bytes()[v.Offset+bytes])) &^ (lineBytes - 1)
	}
	panel := row / panelRows * panelRows
	lines := []uintptr{at(m.Weight, m.Format.WeightBytes(panel, m.Cols))}
	if m.Format.Kind == quant.Affine {
		lines = append(lines, at(m.Scales, m.Format.ScaleBytes(panel, m.Cols)), at(m.Biases, m.Format.ScaleBytes(panel, m.Cols)))
	}
	return lines
}

// inside reports whether a line is memory of a matrix.
func inside(m *gpu.Matrix, line uintptr) bool {
	in := func(v gpu.View, n int) bool {
		from := uintptr(unsafe.Pointer(&v.Buf.Bytes()[v.Offset]))
		return line+lineBytes > from && line < from+uintptr(n)
	}
	if m.Format.Kind == quant.Affine {
		n := m.Format.ScaleBytes(m.Rows, m.Cols)
		if in(m.Scales, n) || in(m.Biases, n) {
			return true
		}
	}
	return in(m.Weight, m.Format.WeightBytes(m.Rows, m.Cols))
}

// TestPlanner wants each thread to be told of the beginning of its own part of the next product, of no other memory, and of no more
// than there is room for.
func TestPlanner(t *testing.T) {
	d := open(t, 1)
	panels := q4
	panels.Layout = quant.Panels
	const threads, dim = 3, 1024
	w := func(rows, cols int, f quant.Format) gpu.Matrix { return benchMatrix(t, d, rows, cols, f) }
	x, y := benchFloats(t, d, 8*dim), benchFloats(t, d, 8*8192)
	mat := func(m gpu.Matrix, rows int) *gpu.MatMul { return &gpu.MatMul{W: m, X: x, Y: y, Rows: rows} }
	norm := &gpu.RMSNorm{X: x, Y: x, Vectors: 1, Dim: dim}
	q, k := w(6144, dim, panels), w(1024, dim, panels)
	plain, small := w(3072, dim, quant.Format{Kind: quant.BF16}), w(32, dim, panels)
	experts := make([]gpu.Expert, 4)
	for i := range experts {
		experts[i] = gpu.Expert{Gate: w(768, dim, panels), Up: w(768, dim, panels), Down: w(dim, 768, panels), Pairs: []int32{int32(i)}}
	}
	moe := &gpu.Experts{Rows: 1, TopK: 4, Experts: experts}

	for _, tc := range []struct {
		name  string
		plan  func(p *planner)
		first map[int]rowOf // where a thread begins
		from  []gpu.Matrix
	}{
		{"products behind a norm", func(p *planner) { p.foretell([]gpu.Op{norm, mat(q, 1), mat(k, 1)}) }, map[int]rowOf{0: {&q, 0}}, []gpu.Matrix{q, k}},
		{"rows of codes", func(p *planner) { p.foretell([]gpu.Op{mat(w(3072, dim, q4), 2)}) }, nil, nil},
		{"bf16", func(p *planner) { p.foretell([]gpu.Op{mat(plain, 1)}) }, map[int]rowOf{0: {&plain, 0}}, []gpu.Matrix{plain}},
		{"one thread does all", func(p *planner) { p.foretell([]gpu.Op{mat(small, 1)}) }, map[int]rowOf{1: {&small, 0}}, []gpu.Matrix{small}},
		{"experts", func(p *planner) { p.foretell([]gpu.Op{norm, moe}) }, map[int]rowOf{0: {&experts[0].Gate, 0}},
			[]gpu.Matrix{experts[0].Gate, experts[0].Up, experts[1].Gate, experts[1].Up, experts[2].Gate, experts[2].Up, experts[3].Gate, experts[3].Up}},
		{"their second phase", func(p *planner) { p.experts(moe, true) }, map[int]rowOf{0: {&experts[0].Down, 0}},
			[]gpu.Matrix{experts[0].Down, experts[1].Down, experts[2].Down, experts[3].Down}},
		{"many rows", func(p *planner) { p.foretell([]gpu.Op{mat(q, foretoldRows+1)}) }, nil, []gpu.Matrix{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, f := plannerOf(t, threads)
			tc.plan(p)
			f.take(p.pool)
			seen := map[uintptr]bool{}
			for thread, lines := range f.lines {
				if n := len(lines) * lineBytes; n > aheadBytes+64<<10 {
					t.Errorf("thread %d fetches %d bytes", thread, n)
				}
				for i, line := range lines {
					if seen[line] && i > 0 {
						t.Errorf("thread %d: line %#x is fetched twice", thread, line)
					}
					seen[line] = true
					if tc.from != nil && !slices.ContainsFunc(tc.from, func(m gpu.Matrix) bool { return inside(&m, line) }) {
						t.Fatalf("thread %d: line %#x belongs to no matrix of the product", thread, line)
					}
				}
			}
			for thread, at := range tc.first {
				for _, line := range memoryOf(at.m, at.row) {
					if !slices.ContainsFunc(f.lines[thread], func(l uintptr) bool { return l&^(lineBytes-1) == line }) {
						t.Errorf("thread %d does not fetch where its part begins", thread)
					}
				}
			}
			if tc.from == nil && len(seen) == 0 {
				t.Error("nothing is fetched")
			}
			if tc.from != nil && len(tc.from) == 0 && len(seen) > 0 {
				t.Errorf("%d lines are fetched", len(seen))
			}
		})
	}
}

// rowOf is a row of a matrix.
type rowOf struct {
	m   *gpu.Matrix
	row int
}

// TestFetchFaultsNowhere asks for memory that is not there.
func TestFetchFaultsNowhere(t *testing.T) {
	mem, err := mapMemory(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	at := uintptr(unsafe.Pointer(&mem[0]))
	unmap(mem)
	for _, k := range available() {
		if k.fetch != nil {
			k.fetch(at, 1<<20/lineBytes)
			k.fetch(0, 100)
			k.fetch(^uintptr(0)-6400, 100)
		}
	}
}

// TestPlansWhileFetching writes plans while threads read them; for the race detector.
func TestPlansWhileFetching(t *testing.T) {
	var lines sync.Map
	a := ahead{parts: make([]aheadPart, 2), lines: func(at uintptr, n int) { lines.Store(at, n) }}
	var readers sync.WaitGroup
	done := make(chan struct{})
	for thread := range 2 {
		readers.Go(func() {
			var f fetcher
			for {
				select {
				case <-done:
					return
				default:
					a.step(&f, thread)
				}
			}
		})
	}
	for plan := range 2000 {
		a.begin()
		for run := range aheadRuns + 2 { // two are too many
			a.add(plan%2, uintptr(run*lineBytes), plan%5*lineBytes)
		}
		a.publish()
	}
	close(done)
	readers.Wait()
}
