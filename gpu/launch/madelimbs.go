package launch

import "github.com/moeflux/moeflux-actor/gpu"

// madeLimbs is rows whose limbs are in scratch memory. The kernel that wrote the rows made them, or
// limbs_split did. Since then there were only products of the same rows, and choices of experts by
// their results.
type madeLimbs struct {
	rows        limbRows
	cols, group int // group 0: there are none
	next        int // the operation that may use them
}

// reserveLimbs takes scratch memory from byte *at on for the limbs of rows, and moves *at past it.
func (x *encoder) reserveLimbs(r *limbRows, cols, group int, at *int) {
	r.limbs, r.sums, r.split = x.reserve(at, ceil(3*r.rows*cols, 4)), x.reserve(at, 2*r.rows*(cols/group)), true
}

// after returns the operation that follows the first n from the one under way on. It looks past
// marks, nil if there is none.
func (x *encoder) after(n int) gpu.Op {
	for i := x.at + n; i < len(x.ops); i++ {
		if x.ops[i].Kind() != gpu.KindMark {
			return x.ops[i]
		}
	}
	return nil
}

// wantedLimbs returns limbs to be made of dense rows at y, if the operation after the next n is a
// product of them that takes limbs. They lie in scratch memory from byte *at on, which it moves
// past them.
func (x *encoder) wantedLimbs(y gpu.View, rows, cols, n int, at *int) (m madeLimbs) {
	o, ok := x.after(n).(*gpu.MatMul)
	if !ok || x.plain || !x.limbs(o.W.Format) || o.X != y || o.Rows != rows || o.W.Cols != cols || or(o.XStride, cols) != cols {
		return m
	}
	m = madeLimbs{rows: limbRows{x: y, rows: rows, stride: cols}, cols: cols, group: o.W.Format.Group(), next: x.at + n}
	x.reserveLimbs(&m.rows, cols, m.group, at)
	return m
}

// normLimbs returns those of the result of a norm, which ends the next n operations.
func (x *encoder) normLimbs(o *gpu.RMSNorm, n int) madeLimbs {
	if or(o.YStride, o.Dim) != o.Dim {
		return madeLimbs{}
	}
	at := 0
	return x.wantedLimbs(o.Y, o.Vectors, o.Dim, n, &at)
}

// limbsOf binds where a kernel writes limbs beside the rows at y, and notes that they will be
// there. If it writes none, any memory is bound that it may write to.
func (x *encoder) limbsOf(m *madeLimbs, y gpu.View) {
	if m.group == 0 {
		x.views(y, y)
		return
	}
	x.places(m.rows.limbs, m.rows.sums)
	x.made = *m
}

// splitOnce prepares the rows of a launch of n operations that begins with a product. Where split
// says so they are split, unless their limbs are made.
func (x *encoder) splitOnce(o *gpu.MatMul, d [4]int, r *limbRows, split bool, n int) {
	if split && !r.split {
		x.splitLimbs(o, d, r, o.W.Cols)
	}
	if r.split {
		x.made = madeLimbs{rows: *r, cols: o.W.Cols, group: d[1], next: x.at + n}
	}
}

// findLimbs finds the limbs of rows of cols inputs in groups, if they are the last that were made.
func (x *encoder) findLimbs(r *limbRows, cols, group int) bool {
	m := &x.made
	if m.next != x.at || m.rows.x != r.x || m.rows.rows != r.rows || m.rows.stride != r.stride || m.cols != cols || m.group != group {
		return false
	}
	*r = m.rows
	return true
}

// keepLimbs lets the last limbs serve the operation after the one under way, too, which takes no
// scratch memory and writes to these extents.
func (x *encoder) keepLimbs(written ...extent) {
	m := &x.made
	if m.group > 0 && m.next == x.at && floatsAt(m.rows.x, m.rows.rows, m.cols, m.rows.stride).apart(written...) {
		m.next++
	}
}
