package host

import (
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// foretoldRows is the most rows of X for which memory is what a product waits for.
const foretoldRows = 8

// planner foretells what each thread will read first in a product, from the same cuts.
type planner struct {
	kernels *kernels
	pool    *pool
	mat     matTask
	cuts    []cut
	last    gpu.Op // the product that was foretold last
	down    bool   // and its phase
	left    []int  // bytes that each thread may still fetch
}

// foretell looks for the first product among ops and tells the pool what it will read. It reports whether there is one.
func (p *planner) foretell(ops []gpu.Op) bool {
	if !p.pool.fetches() {
		return true
	}
	for i, op := range ops {
		switch o := op.(type) {
		case *gpu.MatMul:
			if p.begin(o, false, o.Rows) {
				p.matMuls(ops[i:])
			}
			return true
		case *gpu.Experts:
			p.experts(o, false)
			return true
		}
	}
	return false
}

// begin begins the plan of a product, unless it is the last one or multiplies too many rows, or no thread would fetch anything.
func (p *planner) begin(o gpu.Op, down bool, rows int) bool {
	if !p.pool.fetches() || p.last == o && p.down == down || rows > foretoldRows {
		return false
	}
	p.last, p.down = o, down
	p.pool.ahead.begin()
	p.left = p.left[:0]
	for range p.pool.ahead.parts {
		p.left = append(p.left, aheadBytes)
	}
	return true
}

// matMuls plans the product that ops begin with and those that will share its job.
func (p *planner) matMuls(ops []gpu.Op) {
	t := &p.mat
	first := ops[0].(*gpu.MatMul)
	t.kernels, t.rows, t.products = p.kernels, first.Rows, t.products[:0]
	total := 0
	for _, op := range ops[:min(len(ops), maxJoined)] {
		o, ok := op.(*gpu.MatMul)
		if !ok || !sameX(first, o) {
			break
		}
		w := shapeOf(&o.W)
		t.products = append(t.products, product{w: w})
		total += p.kernels.nanoseconds(&w, t.rows)
	}
	count := t.cut(p.pool.spread(), total)
	p.threads(count, total, func(thread, chunk int) {
		i := len(t.products) - 1
		for t.products[i].first > chunk {
			i--
		}
		c := &t.products[i].cut
		o := (chunk - c.first) % c.count * c.per
		p.rows(thread, &ops[i].(*gpu.MatMul).W, o, o+c.per)
	})
	p.pool.ahead.publish()
}

// experts plans one phase of routed experts.
func (p *planner) experts(o *gpu.Experts, down bool) {
	if !p.begin(o, down, o.Rows) {
		return
	}
	var count, total int
	p.cuts, count, total = p.kernels.cutExperts(p.cuts, o.Experts, down, p.pool.spread())
	p.threads(count, total, func(thread, chunk int) {
		i := len(p.cuts) - 1
		for p.cuts[i].first > chunk {
			i--
		}
		e, c := &o.Experts[i], &p.cuts[i]
		at := (chunk - c.first) * c.per
		if down {
			p.rows(thread, &e.Down, at, at+c.per)
			return
		}
		p.rows(thread, &e.Gate, at, at+c.per)
		p.rows(thread, &e.Up, at, at+c.per)
	})
	p.pool.ahead.publish()
}

// threads calls plan for the chunks of a job of count chunks, thread by thread and in the order in which it takes them, until
// there is enough for it.
func (p *planner) threads(count, total int, plan func(thread, chunk int)) {
	for thread := range p.left {
		low, high := share(thread, count, len(p.left))
		if count == 1 || total < inlineNS { // the calling thread does all; it can take it from another's cache
			low, high = 0, 0
			if thread == 1 {
				high = count
			}
		}
		for chunk := low; chunk < high && p.left[thread] > 0; chunk++ {
			plan(thread, chunk)
		}
	}
}

// rows adds the rows o0 ≤ o < o1 of a matrix to what a thread fetches: whole panels, as far as there is room.
func (p *planner) rows(thread int, m *gpu.Matrix, o0, o1 int) {
	o1 = min(o1, m.Rows)
	codes, scales := m.Format.WeightBytes(panelRows, m.Cols), 0
	if m.Format.Kind == quant.Affine {
		scales = m.Format.ScaleBytes(panelRows, m.Cols)
	}
	n := min(chunks(o1-o0, panelRows), chunks(max(p.left[thread], 0), codes+2*scales))
	at, end := o0, min(o0+n*panelRows, o1)
	if at >= end {
		return
	}
	p.left[thread] -= n * (codes + 2*scales)
	add := func(v gpu.View, bytes func(rows int) int) {
		mem, from, to := v.Buf.Bytes(), v.Offset+bytes(at), v.Offset+bytes(end)
		if to > len(mem) {
			return // released since it was checked: whoever runs the product says so
		}
		p.pool.ahead.add(thread, uintptr(unsafe.Pointer(&mem[from])), to-from)
	}
	if scales > 0 {
		bytes := func(rows int) int { return m.Format.ScaleBytes(rows, m.Cols) }
		add(m.Scales, bytes)
		add(m.Biases, bytes)
	}
	add(m.Weight, func(rows int) int { return m.Format.WeightBytes(rows, m.Cols) })
}
