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

// limbsMade are the limbs that exact products take, three of an input, and those that others do: 1
// is the one limb of an input where the device rounds.
type limbsMade [2]madeLimbs

// limbsOf is how many limbs an input has.
func limbsOf(rounded int) int { return 3 - 2*rounded }

// reserveLimbs takes scratch memory from byte *at on for the limbs of rows, and moves *at past it.
func (x *encoder) reserveLimbs(r *limbRows, cols, group, rounded int, at *int) {
	r.limbs, r.sums, r.split = x.reserve(at, ceil(limbsOf(rounded)*r.rows*cols, 4)), x.reserve(at, 2*r.rows*(cols/group)), true
}

// wantedLimbs returns limbs to be made of dense rows at y, if the operations after the next n are
// products of them that take limbs, and experts chosen by these. They lie in scratch memory from
// byte *at on, which it moves past them.
func (x *encoder) wantedLimbs(y gpu.View, rows, cols, n int, at *int) (m limbsMade) {
	want := func(group, rounded int) {
		if m[rounded].group > 0 {
			return
		}
		m[rounded] = madeLimbs{rows: limbRows{x: y, rows: rows, stride: cols}, cols: cols, group: group, next: x.at + n}
		x.reserveLimbs(&m[rounded].rows, cols, group, rounded, at)
	}
	products := 0
	for i := x.at + n; i < len(x.ops) && !x.plain; i++ {
		switch o := x.ops[i].(type) {
		case *gpu.MatMul:
			if !x.limbs(o.W.Format) || o.X != y || o.Rows != rows || o.W.Cols != cols || or(o.XStride, cols) != cols {
				return m
			}
			want(o.W.Format.Group(), x.rounded(o.Exact))
			products++
		case *gpu.Experts:
			if f := o.Table.Experts[0].Gate.Format; products > 0 && x.limbs(f) && o.X == y && o.Rows == rows {
				want(f.Group(), x.rounded(false))
			}
			return m
		case *gpu.Mark, *gpu.Route:
		default:
			return m
		}
	}
	return m
}

// normLimbs returns those of the result of a norm, which ends the next n operations.
func (x *encoder) normLimbs(o *gpu.RMSNorm, n int) limbsMade {
	if or(o.YStride, o.Dim) != o.Dim {
		return limbsMade{}
	}
	at := 0
	return x.wantedLimbs(o.Y, o.Vectors, o.Dim, n, &at)
}

// bindLimbs binds where a kernel writes limbs beside the rows at y. Where it writes none, memory is
// bound that it may write to.
func (x *encoder) bindLimbs(m *limbsMade, y place) {
	for i := range m {
		if m[i].group > 0 {
			x.places(m[i].rows.limbs, m[i].rows.sums)
		} else {
			x.places(y, y)
		}
	}
}

// makeLimbs is bindLimbs, and notes that they will be there.
func (x *encoder) makeLimbs(m *limbsMade, y gpu.View) {
	x.bindLimbs(m, place{view: y})
	x.made = *m
}

// splitOnce prepares the rows of a launch of n operations that begins with a product. Where split
// says so they are split, unless their limbs are made.
func (x *encoder) splitOnce(o *gpu.MatMul, d limbFormat, r *limbRows, split bool, n int) {
	if split && !r.split {
		x.splitLimbs(o, d, r, o.W.Cols)
	}
	for i := range x.made {
		m := &x.made[i]
		switch {
		case i == d.rounded && r.split:
			*m = madeLimbs{rows: *r, cols: o.W.Cols, group: d.group, next: x.at + n}
		case m.next == x.at && m.rows.x == r.x && m.rows.rows == r.rows && m.rows.stride == r.stride:
			m.next = x.at + n
		}
	}
}

// findLimbs finds the limbs of rows of cols inputs that a product takes, if they are the last that
// were made.
func (x *encoder) findLimbs(r *limbRows, cols int, d limbFormat) bool {
	m := &x.made[d.rounded]
	if m.next != x.at || m.rows.x != r.x || m.rows.rows != r.rows || m.rows.stride != r.stride || m.cols != cols || m.group != d.group {
		return false
	}
	*r = m.rows
	return true
}

// keepLimbs lets the last limbs serve the operation after the one under way, too, which takes no
// scratch memory and writes to these extents.
func (x *encoder) keepLimbs(written ...extent) {
	for i := range x.made {
		m := &x.made[i]
		if m.group > 0 && m.next == x.at && floatsAt(m.rows.x, m.rows.rows, m.cols, m.rows.stride).apart(written...) {
			m.next++
		}
	}
}
