package gpu

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/model/quant"
)

// fakeBuffer has a length and no memory.
type fakeBuffer struct{ n int }

func (b *fakeBuffer) Len() int      { return b.n }
func (b *fakeBuffer) Bytes() []byte { return nil }
func (b *fakeBuffer) Release()      {}

// room returns a view of a buffer of its own that begins 8 bytes into it and has exactly n bytes.
func room(n int) View { return View{Buf: &fakeBuffer{n + 8}, Offset: 8} }

func floats(n int) View { return room(4 * n) }

var (
	q4  = quant.Affine(4, 32)
	f32 = quant.F32
	b16 = quant.BF16
)

func matrix(rows, cols int, f quant.Format) Matrix {
	m := Matrix{Rows: rows, Cols: cols, Format: f, Weight: room(f.WeightBytes(rows, cols))}
	if f.Codes() {
		m.Scales, m.Biases = room(f.ScaleBytes(rows, cols)), room(f.ScaleBytes(rows, cols))
	}
	return m
}

// pages returns a table of n pages whose keys and values, each of rows rows of dim, follow each
// other.
func pages(n, rows, dim int) KV {
	kv := KV{KVLayout: KVLayout{PageRows: rows, Dim: dim, VOffset: 4 * rows * dim}}
	for range n {
		kv.Pages = kv.Pages.Append(floats(2 * rows * dim))
	}
	return kv
}

// cut makes a view one byte too short.
func cut(v *View) { v.Buf = &fakeBuffer{v.Buf.Len() - 1} }

// bad is one way to make an operation wrong.
type bad[T any] struct {
	name   string
	damage func(o *T)
	why    string // part of the error
}

// view damages the view that at finds: none at all, one byte short, misaligned, before the buffer,
// past its end.
func view[T any](name string, align int, at func(o *T) *View) []bad[T] {
	list := []bad[T]{
		{name + " missing", func(o *T) { *at(o) = View{} }, "has no buffer"},
		{name + " short", func(o *T) { cut(at(o)) }, "do not fit"},
		{name + " negative", func(o *T) { at(o).Offset = -8 }, "do not fit"},
		{name + " outside", func(o *T) { at(o).Offset = at(o).Buf.Len() + 4 }, "do not fit"},
		{name + " far outside", func(o *T) { at(o).Offset = math.MaxInt - 3 }, "do not fit"},
	}
	if align > 1 {
		list = append(list, bad[T]{name + " misaligned", func(o *T) {
			v := at(o)
			*v = View{Buf: &fakeBuffer{v.Buf.Len() + align}, Offset: v.Offset + align/2}
		}, "not a multiple"})
	}
	return list
}

// pageView damages page i of a cache.
func pageView[T any](name string, at func(o *T) *Pages, i int) (list []bad[T]) {
	for _, d := range view(name, 4, func(v *View) *View { return v }) {
		list = append(list, bad[T]{d.name, func(o *T) {
			pages := at(o)
			var views []View
			for p := range pages.Len() {
				views = append(views, pages.At(p))
			}
			d.damage(&views[i])
			*pages = PagesOf(views...)
		}, d.why})
	}
	return list
}

// rooms returns n pages of size bytes.
func rooms(n, size int) (p Pages) {
	for range n {
		p = p.Append(room(size))
	}
	return p
}

// size damages a size: zero, negative, and so large that products overflow.
func size[T any](name string, at func(o *T) *int) []bad[T] {
	list := []bad[T]{
		{name + " zero", func(o *T) { *at(o) = 0 }, "want at least"},
		{name + " negative", func(o *T) { *at(o) = -1 }, "want at least"},
	}
	for _, n := range []int{math.MaxInt, math.MaxInt/4 + 1, 1 << 62, 1 << 32, 1 << 33} {
		list = append(list, bad[T]{name + " huge", func(o *T) { *at(o) = n }, ""})
	}
	return list
}

// same makes one view another.
func same[T any](name string, f func(o *T)) bad[T] { return bad[T]{name, f, "overlap"} }

func join[T any](lists ...[]bad[T]) (all []bad[T]) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// mats damages a matrix.
func mats[T any](name string, at func(o *T) *Matrix) []bad[T] {
	return join(
		view(name, 4, func(o *T) *View { return &at(o).Weight }),
		view(name+" scales", 2, func(o *T) *View { return &at(o).Scales }),
		view(name+" biases", 2, func(o *T) *View { return &at(o).Biases }),
		size(name+" rows", func(o *T) *int { return &at(o).Rows }),
		size(name+" cols", func(o *T) *int { return &at(o).Cols }),
		[]bad[T]{
			{name + " layout", func(o *T) { at(o).Format.Layout = 2 }, "unknown layout"},
			{name + " panels", func(o *T) { at(o).Format.Layout, at(o).Rows = quant.Panels, at(o).Rows/16*16+1 }, "multiples of 16"},
			{name + " group does not divide", func(o *T) { at(o).Format, at(o).Cols = quant.Affine(4, 64), 96 }, "do not divide"},
		})
}

// check wants good to pass and every damage to be found, with an *OpError of the operation.
func check[T any, P interface {
	*T
	Op
}](t *testing.T, good func() T, damages []bad[T]) {
	t.Helper()
	o := good()
	if err := P(&o).Check(); err != nil {
		t.Errorf("%s: %v, want no error", P(&o).Name(), err)
	}
	for _, d := range damages {
		o := good()
		d.damage(&o)
		err := P(&o).Check()
		var e *OpError
		switch {
		case !errors.As(err, &e):
			t.Errorf("%s: %s: error %v, want an *OpError", P(&o).Name(), d.name, err)
		case e.Op != P(&o).Name() || !strings.Contains(e.Why, d.why):
			t.Errorf("%s: %s: error %q, want it to say %q", P(&o).Name(), d.name, err, d.why)
		}
	}
	if allocs := testing.AllocsPerRun(100, func() { _ = P(&o).Check() }); allocs != 0 {
		t.Errorf("%s: a good Check allocates %v times", P(&o).Name(), allocs)
	}
}

func TestCommandsCheck(t *testing.T) {
	var c Commands
	Encode(&c, Fill{Dst: room(4), Bytes: 4})
	Encode(&c, Fill{Dst: room(4), Bytes: 5})
	var e *OpError
	err := c.Check()
	if !errors.As(err, &e) || !strings.Contains(err.Error(), "operation 1 of 2") {
		t.Errorf("error %v, want the *OpError of operation 1", err)
	}
	c.Reset()
	Encode(&c, Fill{Dst: room(4), Bytes: 4})
	if err := c.Check(); err != nil {
		t.Errorf("after Reset: %v", err)
	}
}

// TestOverlap compares overlap with a look at every byte.
func TestOverlap(t *testing.T) {
	buf := &fakeBuffer{1000}
	for _, stride := range []int{8, 12, 20} {
		for _, other := range []int{8, 12, 20} {
			for at := range 40 {
				a := span{View{buf, 10}, 3, stride, 8}
				b := span{View{buf, at}, 2, other, 5}
				used := map[int]bool{}
				mark := func(s span, f func(i int)) {
					for r := range s.rows {
						for i := range s.width {
							f(s.v.Offset + r*s.stride + i)
						}
					}
				}
				mark(a, func(i int) { used[i] = true })
				want := false
				mark(b, func(i int) { want = want || used[i] })
				got := overlap(a, b)
				if got != overlap(b, a) {
					t.Fatalf("overlap(%v, %v) is not symmetric", a, b)
				}
				// With different strides it may say yes where rows only lie between each other's.
				if want && !got {
					t.Errorf("overlap of stride %d and stride %d at %d was missed", stride, other, at)
				}
				if stride == other && got != want {
					t.Errorf("overlap at stride %d, offset %d: got %t, want %t", stride, at, got, want)
				}
			}
		}
	}
	if overlap(span{View{buf, 0}, 1, 8, 8}, span{View{&fakeBuffer{9}, 0}, 1, 8, 8}) {
		t.Error("different buffers overlap")
	}
}

func BenchmarkCheck(b *testing.B) {
	o := MatMul{W: matrix(5, 64, q4), X: floats(192), Y: floats(15), Rows: 3}
	b.ReportAllocs()
	for b.Loop() {
		if err := o.Check(); err != nil {
			b.Fatal(err)
		}
	}
}
