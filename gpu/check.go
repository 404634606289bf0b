package gpu

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/moeflux/moeflux-actor/model/quant"
)

// OpError reports an operation whose sizes or views do not fit. Nothing of its Commands was run.
type OpError struct {
	Op  string // the operation's name
	Why string // what does not fit, with the numbers
}

func (e *OpError) Error() string { return "gpu: " + e.Op + ": " + e.Why }

// Check checks every operation in order and returns the first one's error, a wrapped *OpError. It
// changes nothing. Devices call it in Submit, and then Accept.
func (c *Commands) Check() error {
	for i, op := range c.ops {
		var err error
		switch o := op.(type) {
		case *Experts:
			err = o.check(c.tabulates(o.Table, i))
		case *Retabulate:
			err = o.check(c.tabulates(o.Table, i))
		default:
			err = op.Check()
		}
		if err != nil {
			return fmt.Errorf("operation %d of %d: %w", i, len(c.ops), err)
		}
	}
	return nil
}

// tabulates reports whether one of the first n operations writes a table that no Submit wrote yet.
func (c *Commands) tabulates(table *ExpertTable, n int) bool {
	if table == nil || table.written || table.At.IsZero() {
		return false
	}
	for _, op := range c.ops[:n] {
		if t, ok := op.(*Tabulate); ok && t.Table == table {
			return true
		}
	}
	return false
}

// Accept notes that a device has taken c, which Check has passed: later Commands may use the tables
// of experts that c writes. Devices call it when nothing can refuse c any more.
func (c *Commands) Accept() {
	for _, t := range encoded[Tabulate](c, KindTabulate) {
		t.Table.written = true
	}
}

// checker collects the first thing that is wrong with one operation. After that its methods do
// nothing, so a Check reads as a list. Nothing is allocated unless something is wrong.
type checker struct {
	op  string
	err *OpError
}

// result returns the first error found, or nil.
func (c *checker) result() error {
	if c.err == nil {
		return nil
	}
	return c.err
}

// ok reports whether nothing was wrong so far.
func (c *checker) ok() bool { return c.err == nil }

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = &OpError{Op: c.op, Why: fmt.Sprintf(format, args...)}
	}
}

// within adds to the error, if there is one, where in a list it was found.
func (c *checker) within(list string, i int) {
	if c.err != nil {
		c.err.Why = fmt.Sprintf("%s %d: %s", list, i, c.err.Why)
	}
}

// positive requires n > 0.
func (c *checker) positive(name string, n int) {
	if c.err == nil && n <= 0 {
		c.fail("%s is %d, want at least 1", name, n)
	}
}

// divides requires a to be a multiple of b, both positive.
func (c *checker) divides(nameA string, a int, nameB string, b int) {
	if c.err == nil && a%b != 0 {
		c.fail("%s %d does not divide into %s %d", nameA, a, nameB, b)
	}
}

// eps requires a finite number that is not negative.
func (c *checker) eps(e float32) {
	if c.err == nil && !(e >= 0 && e <= math.MaxFloat32) {
		c.fail("eps is %v, want a finite number that is not negative", e)
	}
}

// span is the memory of an operand: rows rows of width bytes, stride bytes apart.
type span struct {
	v                   View
	rows, stride, width int
}

func (s span) bytes() int { return sum(product(s.rows-1, s.stride), s.width) }

// bytes requires n bytes at v, aligned to align, a power of two, inside v's buffer.
func (c *checker) bytes(name string, v View, n, align int) span {
	if c.err == nil && (v.Buf == nil || !v.holds(n, align)) {
		c.misfit(name, v, n, align)
	}
	return span{v, 1, n, n}
}

// holds reports whether n bytes from v on lie inside its buffer, aligned.
func (v View) holds(n, align int) bool {
	size := v.Buf.Len()
	return v.Offset >= 0 && v.Offset <= size && n <= size-v.Offset && v.Offset&(align-1) == 0
}

// misfit says why the n bytes that are required at v are not there.
func (c *checker) misfit(name string, v View, n, align int) {
	if v.Buf == nil {
		c.fail("%s has no buffer", name)
		return
	}
	if size := v.Buf.Len(); v.Offset < 0 || v.Offset > size || n > size-v.Offset {
		c.fail("%s: %d bytes at offset %d do not fit a buffer of %d", name, n, v.Offset, size)
		return
	}
	c.fail("%s: offset %d is not a multiple of %d", name, v.Offset, align)
}

// floats requires n float32 at v.
func (c *checker) floats(name string, v View, n int) span {
	return c.bytes(name, v, product(n, 4), 4)
}

// dense requires float32 [rows, dim] at v.
func (c *checker) dense(name string, v View, rows, dim int) span {
	return c.floats(name, v, product(rows, dim))
}

// strided requires rows rows of dim float32, stride apart.
func (c *checker) strided(name string, v View, rows, dim, stride int) span {
	if c.err == nil && stride < dim {
		c.fail("%s: stride %d is smaller than a row of %d", name, stride, dim)
	}
	c.floats(name, v, sum(product(rows-1, stride), dim))
	return span{v, rows, product(stride, 4), product(dim, 4)}
}

// heads requires vectors (row, head) of dim float32 at row·rowStride + head·headStride.
func (c *checker) heads(name string, v View, rows, heads, dim, rowStride, headStride int) span {
	width := dim
	if heads > 1 {
		if c.err == nil && headStride < dim {
			c.fail("%s: head stride %d is smaller than a head of %d", name, headStride, dim)
		}
		width = sum(product(heads-1, headStride), dim)
	}
	return c.strided(name, v, rows, width, rowStride)
}

// matrix requires a shape and format that kernels serve, and a matrix that lies inside its buffers.
func (c *checker) matrix(name string, m *Matrix) {
	if c.err != nil {
		return
	}
	if m.Rows <= 0 || m.Cols <= 0 {
		c.fail("%s is [%d, %d], want at least [1, 1]", name, m.Rows, m.Cols)
		return
	}
	if err := m.Format.Validate(m.Cols); err != nil {
		c.fail("%s [%d, %d]: %v", name, m.Rows, m.Cols, err)
		return
	}
	if !m.Format.HoldsRows(m.Rows) {
		c.fail("%s [%d, %d]: panels hold multiples of %d rows", name, m.Rows, m.Cols, quant.PanelRows)
		return
	}
	width := product(m.Cols, m.Format.Bits()) / 8
	if b := m.Format.Block(); b != nil {
		width = product(m.Cols/b.Len, b.Size)
	}
	c.bytes(name, m.Weight, product(m.Rows, width), m.Format.WordBytes())
	groups, coding := 0, m.Format.Coding()
	if m.Format.Codes() {
		groups = product(m.Rows, m.Cols/m.Format.Group())
	}
	c.numbers(name, "scales", m, m.Scales, groups, coding.ScaleBytes())
	if coding.Factor() {
		c.numbers(name, "factors", m, m.Biases, m.Rows, m.Format.BiasBytes(1, m.Cols))
	} else {
		c.numbers(name, "biases", m, m.Biases, groups, coding.BiasBytes())
	}
}

// numbers requires count numbers of the given size, or nothing if the format has none. Kernels are
// given those of one byte as numbers of 2 bytes.
func (c *checker) numbers(name, what string, m *Matrix, v View, count, size int) {
	switch {
	case !c.ok():
	case size == 0 && v.Buf != nil:
		c.fail("%s: format %v has no %s", name, m.Format, what)
	case size != 0:
		c.bytes(what, v, product(count, size), max(size, 2))
		if !c.ok() {
			c.err.Why = name + " " + c.err.Why
		}
	}
}

// shape requires m to be [rows, cols].
func (c *checker) shape(name string, m *Matrix, rows, cols int) {
	if c.err == nil && (m.Rows != rows || m.Cols != cols) {
		c.fail("%s is [%d, %d], want [%d, %d]", name, m.Rows, m.Cols, rows, cols)
	}
}

// blocks requires m to have, for each head, used rows from row head·headRows + first on, inside
// that head's headRows rows.
func (c *checker) blocks(name string, m *Matrix, heads, headRows, first, used int) {
	if c.err != nil {
		return
	}
	if headRows <= 0 || first < 0 || sum(first, used) > headRows || product(heads, headRows) > m.Rows {
		c.fail("%s has %d rows, want %d heads of %d, and of those %d from row %d on", name, m.Rows, heads, headRows, used, first)
	}
}

// indices requires every index in [0, n).
func (c *checker) indices(name string, list []int32, n int) {
	if c.err != nil {
		return
	}
	for i, v := range list {
		if v < 0 || int(v) >= n {
			c.fail("%s %d at index %d is outside the %d there are", name, v, i, n)
			return
		}
	}
}

// apart requires two operands that share no byte.
func (c *checker) apart(nameA string, a span, nameB string, b span) {
	if c.err == nil && overlap(a, b) {
		c.fail("%s and %s overlap", nameA, nameB)
	}
}

// sameOrApart requires an output that is exactly an input or shares no byte with it.
func (c *checker) sameOrApart(nameA string, a span, nameB string, b span) {
	if c.err == nil && a != b && overlap(a, b) {
		c.fail("%s and %s overlap without being the same", nameA, nameB)
	}
}

// overlap reports whether two spans that fit their buffers share a byte. Rows of one stride may be
// interleaved, as the parts of one wide row are; of different strides it takes the whole extents.
func overlap(a, b span) bool {
	if a.v.Buf == nil || a.v.Buf != b.v.Buf {
		return false
	}
	if b.v.Offset < a.v.Offset {
		a, b = b, a
	}
	d := b.v.Offset - a.v.Offset
	if d >= a.bytes() {
		return false
	}
	if a.stride != b.stride || a.stride == 0 {
		return true
	}
	d %= a.stride
	return d < a.width || d+b.width > a.stride
}

// or returns n, or zero if n is 0.
func or(n, zero int) int {
	if n == 0 {
		return zero
	}
	return n
}

// product returns a·b, or the largest int if that does not fit or a factor is negative: no buffer
// holds that much.
func product(a, b int) int {
	if a < 0 || b < 0 {
		return math.MaxInt
	}
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > math.MaxInt {
		return math.MaxInt
	}
	return int(lo)
}

// sum returns a+b, likewise.
func sum(a, b int) int {
	if a < 0 || b < 0 || a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}
