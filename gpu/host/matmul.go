package host

import (
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu"
)

const (
	// plain rows of W widened at a time: two rows of X stay in the first-level cache meanwhile
	tileRows  = 4
	splitRows = 24 // least rows of X in a chunk, where W has too few rows for all threads
	maxJoined = 8  // matrices in one job
)

// rowList is rows in memory, of float32 or rounded.
type rowList struct {
	mem    []byte
	stride int     // bytes from a row to the next
	width  int     // bytes of a row
	int8s  bool    // whether the rows are rounded, see rounded
	list   []int32 // rows taken; nil means 0, 1, …
	div    int     // if not 0, list holds numbers from div·row to div·row+div-1
}

// floatRows returns rows of width float32 in memory, stride apart.
func floatRows(v gpu.View, rows, width, stride int) rowList {
	return rowList{mem: bytesAt(v, 4*((rows-1)*stride+width)), stride: 4 * stride, width: 4 * width}
}

// row returns the place of row i of the list.
func (l *rowList) row(i int) int {
	if l.list == nil {
		return i
	}
	if l.div != 0 {
		return int(l.list[i]) / l.div
	}
	return int(l.list[i])
}

// bytes returns row i of the list.
func (l *rowList) bytes(i int) []byte {
	at := l.row(i) * l.stride
	return l.mem[at : at+l.width]
}

func (l *rowList) floats(i int) []float32 { return gpu.Floats(l.bytes(i), l.width/4) }

// multiply computes out[i, o] = W[o]·in[i] for rows i0 ≤ i < i1 of X and o0 ≤ o < o1 of W. A panel
// begins at o0.
func (k *kernels) multiply(s *scratch, w *matrix, o0, o1 int, in, out *rowList, i0, i1 int) {
	if w.format.Codes() {
		k.mulPanels(&s.panels, w, o0/panelRows, chunks(o1, panelRows), in, out, i0, i1)
		return
	}
	if in.int8s {
		k.mulBlocks(&s.blocks, w, o0, o1, in, out, i0, i1)
		return
	}
	k.mulPlain(s, w, o0, o1, in, out, i0, i1)
}

// mulPlain is multiply for numbers that stand for themselves, and for blocks with X in float32. A
// single row of X is multiplied by rows of W as they are stored, if there is a kernel for that.
// Else a few rows of W at a time are widened once for all rows of X.
func (k *kernels) mulPlain(s *scratch, w *matrix, o0, o1 int, in, out *rowList, i0, i1 int) {
	stored := &k.codings[w.format.Coding()]
	if i1-i0 == 1 && stored.one != nil {
		x, y := in.floats(i0), out.floats(i0)
		for o := o0; o < o1; o++ {
			y[o] = stored.one(w.row(o), x)
		}
		return
	}
	tile := tileRows
	if i1-i0 == 1 {
		if stored.oneSplit != nil {
			k.mulSplit(&s.blocks, w, o0, o1, in.floats(i0), out.floats(i0))
			return
		}
		tile = 1
	}
	q := grow(&s.a, tile*w.cols)
	for t0 := o0; t0 < o1; t0 += tile {
		t1 := min(t0+tile, o1)
		for o := t0; o < t1; o++ {
			stored.widen(q[(o-t0)*w.cols:][:w.cols], w.row(o))
		}
		i := i0
		for ; i+2 <= i1; i += 2 {
			x0, x1, y0, y1 := in.floats(i), in.floats(i+1), out.floats(i), out.floats(i+1)
			for o := t0; o < t1; o++ {
				y0[o], y1[o] = k.plain.two(q[(o-t0)*w.cols:][:w.cols], x0, x1)
			}
		}
		if i < i1 {
			x, y := in.floats(i), out.floats(i)
			for o := t0; o < t1; o++ {
				y[o] = k.plain.last(q[(o-t0)*w.cols:][:w.cols], x)
			}
		}
	}
}

// cut says how the rows of a matrix are divided into chunks.
type cut struct {
	first int // index of its first chunk in the job
	per   int // rows in a chunk, whole panels
	count int
}

// cutRows divides a matrix's rows into about want chunks of whole units, for rows of X of xBytes
// together.
func cutRows(w *matrix, unit, want, first, xBytes int) cut {
	per := chunks(chunks(w.rows, max(want, 1)), unit) * unit
	if xBytes > blockX { // W is read more than once
		per = min(per, max(unit, chunkW/w.rowBytes/unit*unit))
	}
	return cut{first: first, per: per, count: chunks(w.rows, per)}
}

// unit returns the rows of W that kernels take at once, for some rows of X.
func (k *kernels) unit(rows int) int {
	if rows == 1 {
		return panelRows
	}
	return k.pair * panelRows
}

// nanoseconds estimates how long one thread takes to multiply w by rows of X.
func (k *kernels) nanoseconds(w *matrix, rows int) int {
	const bytesNS = 40
	return max(rows*w.rows*w.cols/k.rate, w.rows*w.rowBytes/bytesNS)
}

// product is one matrix product of a job.
type product struct {
	cut
	w       matrix
	in, out rowList
	bias    []float32 // [rows of W], or nil
	perX    int       // rows of X in a chunk; there are count chunks for each such block
}

// matTask is matrix products with the same rows of X. A chunk is some rows of one W times some rows
// of X.
type matTask struct {
	kernels  *kernels
	products []product
	rows     int
}

// product returns the product that a chunk belongs to.
func (t *matTask) product(chunk int) *product {
	p := &t.products[0]
	for i := range t.products[1:] {
		if next := &t.products[1+i]; next.first <= chunk {
			p = next
		}
	}
	return p
}

func (t *matTask) do(s *scratch, chunk int) {
	p := t.product(chunk)
	chunk -= p.first
	o, i := chunk%p.count*p.per, chunk/p.count*p.perX
	oEnd, iEnd := min(o+p.per, p.w.rows), min(i+p.perX, t.rows)
	t.kernels.multiply(s, &p.w, o, oEnd, &p.in, &p.out, i, iEnd)
	if p.bias == nil {
		return
	}
	for ; i < iEnd; i++ {
		y := p.out.floats(i)
		for c := o; c < oEnd; c++ {
			y[c] += p.bias[c]
		}
	}
}

// runMatMuls runs the product that ops begin with and the products after it that may share a job.
// It returns how many it ran.
func (x *executor) runMatMuls(ops []gpu.Op) int {
	t := &x.mat
	t.kernels, t.products = x.kernels, t.products[:0]
	o := ops[0].(*gpu.MatMul)
	t.rows = o.Rows
	t.products = append(t.products, productOf(o))
	for len(t.products) < min(len(ops), maxJoined) {
		next, ok := ops[len(t.products)].(*gpu.MatMul)
		if !ok || !sameX(o, next) {
			break
		}
		p := productOf(next)
		if !p.apart(t.products) {
			break
		}
		t.products = append(t.products, p)
	}
	var groups [groupSizes]bool
	for i := range t.products {
		p := &t.products[i]
		if n := p.w.format.Rounded(); x.rounds && n > 0 && !ops[i].(*gpu.MatMul).Exact {
			p.in.int8s = true
			groups[groupAt(n)] = true
		}
	}
	if groups != [groupSizes]bool{} {
		x.round(&x.inputs, &t.products[0].in, t.rows, t.rows, o.W.Cols, groups)
	}
	total := 0
	for i := range t.products {
		p := &t.products[i]
		if p.in.int8s {
			p.in = x.inputs.rows(p.w.format.Rounded())
		}
		total += x.kernels.nanoseconds(&p.w, t.rows)
	}
	count := x.cutProducts(total)
	x.noteProducts(count, total)
	x.parallel(t, count, total)
	n := len(t.products)
	clear(t.products)
	return n
}

// cutProducts divides the job, which takes total nanoseconds, into chunks. It returns their number.
func (x *executor) cutProducts(total int) int {
	t, n := &x.mat, 0
	for i := range t.products {
		p := &t.products[i]
		ns := x.kernels.nanoseconds(&p.w, t.rows)
		want := pieces(ns, x.spread()*ns/max(total, 1))
		p.cut = cutRows(&p.w, x.kernels.unit(t.rows), want, n, t.rows*p.in.width)
		p.perX = t.rows
		if p.count < want { // W has few rows
			p.perX = max(splitRows, chunks(t.rows, want/p.count))
		}
		n += p.count * chunks(t.rows, p.perX)
	}
	return n
}

// noteProducts notes what each thread reads first in the job, whose chunks take total nanoseconds.
func (x *executor) noteProducts(count, total int) {
	t := &x.mat
	if t.rows > upcomingRows {
		x.follows.last = 0
		return
	}
	first, fresh := x.follows.begin(t.products[0].w.weight, x.threads)
	if !fresh {
		return
	}
	if x.inline(total) {
		clear(first)
		return
	}
	for i := range first {
		chunk, end := i*count/x.threads, (i+1)*count/x.threads
		p := t.product(chunk)
		first[i] = p.w.stretch((chunk-p.first)%p.count*p.per, (end-p.first)*p.per)
	}
}

func productOf(o *gpu.MatMul) product {
	p := product{w: matrixOf(&o.W)}
	p.in = floatRows(o.X, o.Rows, o.W.Cols, or(o.XStride, o.W.Cols))
	p.out = floatRows(o.Y, o.Rows, o.W.Rows, or(o.YStride, o.W.Rows))
	if !o.Bias.IsZero() {
		p.bias = floatsAt(o.Bias, o.W.Rows)
	}
	return p
}

// sameX reports whether two products have the same rows of X.
func sameX(a, b *gpu.MatMul) bool {
	return a.X == b.X && a.Rows == b.Rows && a.W.Cols == b.W.Cols && or(a.XStride, a.W.Cols) == or(b.XStride, b.W.Cols)
}

// apart reports whether p may run at the same time as the products before it: it must neither read
// nor write what they write, nor write what they read.
func (p *product) apart(before []product) bool {
	for i := range before {
		b := &before[i]
		if p.touches(b.out.mem) || b.touches(p.out.mem) {
			return false
		}
	}
	return true
}

// touches reports whether p reads or writes any of mem.
func (p *product) touches(mem []byte) bool {
	return overlap(p.in.mem, mem) || overlap(p.out.mem, mem) || overlap(p.w.weight, mem) || overlap(p.w.scales, mem) ||
		overlap(p.w.biases, mem) || overlap(gpu.FloatBytes(p.bias), mem)
}

func overlap(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	at, bt := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return at < bt+uintptr(len(b)) && bt < at+uintptr(len(a))
}
