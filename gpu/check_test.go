package gpu

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/model/quant"
	"github.com/moeflux/moeflux-actor/model/route"
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
	q4  = quant.Format{Kind: quant.Affine, Bits: 4, Group: 32}
	f32 = quant.Format{Kind: quant.F32}
	b16 = quant.Format{Kind: quant.BF16}
)

func matrix(rows, cols int, f quant.Format) Matrix {
	m := Matrix{Rows: rows, Cols: cols, Format: f, Weight: room(f.WeightBytes(rows, cols))}
	if f.Kind == quant.Affine {
		m.Scales, m.Biases = room(f.ScaleBytes(rows, cols)), room(f.ScaleBytes(rows, cols))
	}
	return m
}

// pages returns a table of n pages whose keys and values, each of rows rows of dim, follow each
// other.
func pages(n, rows, dim int) KV {
	kv := KV{PageRows: rows, Dim: dim, VOffset: 4 * rows * dim}
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
		}, "no multiple"})
	}
	return list
}

// pageView damages page i of a cache.
func pageView[T any](name string, at func(o *T) *KV, i int) (list []bad[T]) {
	for _, d := range view(name, 4, func(v *View) *View { return v }) {
		list = append(list, bad[T]{d.name, func(o *T) {
			kv := at(o)
			var views []View
			for p := range kv.Pages.Len() {
				views = append(views, kv.Pages.At(p))
			}
			d.damage(&views[i])
			kv.Pages = PagesOf(views...)
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
			{name + " kind", func(o *T) { at(o).Format.Kind = 9 }, "unknown kind"},
			{name + " bits", func(o *T) { at(o).Format.Bits = 5 }, "5 bits"},
			{name + " group", func(o *T) { at(o).Format.Group = 48 }, "groups of 48"},
			{name + " layout", func(o *T) { at(o).Format.Layout = 2 }, "unknown layout"},
			{name + " panels", func(o *T) { at(o).Format.Layout, at(o).Rows = quant.Panels, at(o).Rows/16*16+1 }, "multiples of 16"},
			{name + " group does not divide", func(o *T) { at(o).Format.Group, at(o).Cols = 64, 96 }, "do not divide"},
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

func TestCheckTransfers(t *testing.T) {
	check(t, func() Upload { return Upload{Dst: room(7), Src: make([]byte, 7)} }, join(
		view("Dst", 1, func(o *Upload) *View { return &o.Dst }),
		[]bad[Upload]{{"no bytes", func(o *Upload) { o.Src = nil }, "want at least"}}))
	check(t, func() Download { return Download{Src: room(7), Dst: make([]byte, 7)} }, join(
		view("Src", 1, func(o *Download) *View { return &o.Src }),
		[]bad[Download]{{"no bytes", func(o *Download) { o.Dst = nil }, "want at least"}}))
	check(t, func() Fill { return Fill{Dst: room(7), Bytes: 7} }, join(
		view("Dst", 1, func(o *Fill) *View { return &o.Dst }),
		size("Bytes", func(o *Fill) *int { return &o.Bytes })))
}

func TestCheckRows(t *testing.T) {
	check(t, func() Embed { return Embed{Table: matrix(5, 64, q4), Tokens: []int32{0, 4}, Y: floats(128)} }, join(
		mats("Table", func(o *Embed) *Matrix { return &o.Table }),
		view("Y", 4, func(o *Embed) *View { return &o.Y }),
		[]bad[Embed]{
			{"no tokens", func(o *Embed) { o.Tokens = nil }, "want at least"},
			{"token too large", func(o *Embed) { o.Tokens[1] = 5 }, "token 5 at index 1"},
			{"token negative", func(o *Embed) { o.Tokens[0] = -1 }, "token -1"},
			{"more tokens", func(o *Embed) { o.Tokens = make([]int32, 3) }, "do not fit"},
		}))
	check(t, func() Gather { return Gather{X: floats(15), XRows: 5, Rows: []int32{4, 0}, Y: floats(6), Dim: 3} }, join(
		view("X", 4, func(o *Gather) *View { return &o.X }),
		view("Y", 4, func(o *Gather) *View { return &o.Y }),
		size("XRows", func(o *Gather) *int { return &o.XRows }),
		size("Dim", func(o *Gather) *int { return &o.Dim }),
		[]bad[Gather]{
			{"no rows", func(o *Gather) { o.Rows = nil }, "want at least"},
			{"row too large", func(o *Gather) { o.Rows[0] = 5 }, "row 5 at index 0"},
			{"row negative", func(o *Gather) { o.Rows[1] = -1 }, "row -1"},
			same("in place", func(o *Gather) { o.Y = o.X }),
		}))
	norm := func() RMSNorm {
		return RMSNorm{X: floats(2*10 + 7), W: floats(7), Y: floats(2*9 + 7), Vectors: 3, Dim: 7, XStride: 10, YStride: 9, Eps: 1e-6}
	}
	check(t, norm, join(
		view("X", 4, func(o *RMSNorm) *View { return &o.X }),
		view("Y", 4, func(o *RMSNorm) *View { return &o.Y }),
		view("W", 4, func(o *RMSNorm) *View { return &o.W })[1:], // none is all ones
		size("Vectors", func(o *RMSNorm) *int { return &o.Vectors }),
		size("Dim", func(o *RMSNorm) *int { return &o.Dim }),
		[]bad[RMSNorm]{
			{"X stride", func(o *RMSNorm) { o.XStride = 6 }, "stride 6"},
			{"Y stride", func(o *RMSNorm) { o.YStride = 6 }, "stride 6"},
			{"stride negative", func(o *RMSNorm) { o.XStride = -7 }, "stride -7"},
			{"stride huge", func(o *RMSNorm) { o.XStride = math.MaxInt / 2 }, "do not fit"},
			{"eps negative", func(o *RMSNorm) { o.Eps = -1 }, "eps"},
			{"eps NaN", func(o *RMSNorm) { o.Eps = float32(math.NaN()) }, "eps"},
			same("half in place", func(o *RMSNorm) { o.Y = o.X }),
			same("W is Y", func(o *RMSNorm) { o.W = o.Y }),
		}))
	for name, o := range map[string]func(o *RMSNorm){
		"without W":   func(o *RMSNorm) { o.W = View{} },
		"in place":    func(o *RMSNorm) { o.Y, o.YStride = o.X, o.XStride },
		"dense":       func(o *RMSNorm) { o.XStride, o.YStride = 0, 0 },
		"interleaved": func(o *RMSNorm) { o.X, o.XStride, o.YStride = floats(60), 20, 20; o.Y = o.X.Floats(7) },
	} {
		good := norm()
		o(&good)
		if err := good.Check(); err != nil {
			t.Errorf("rmsnorm %s: %v", name, err)
		}
	}
	check(t, func() GatedNorm {
		return GatedNorm{X: floats(21), W: floats(7), Z: floats(21), Y: floats(21), Vectors: 3, Dim: 7, Eps: 1e-6}
	}, join(
		view("X", 4, func(o *GatedNorm) *View { return &o.X }),
		view("W", 4, func(o *GatedNorm) *View { return &o.W }),
		view("Z", 4, func(o *GatedNorm) *View { return &o.Z }),
		view("Y", 4, func(o *GatedNorm) *View { return &o.Y }),
		size("Vectors", func(o *GatedNorm) *int { return &o.Vectors }),
		size("Dim", func(o *GatedNorm) *int { return &o.Dim }),
		[]bad[GatedNorm]{
			{"eps", func(o *GatedNorm) { o.Eps = float32(math.Inf(1)) }, "eps"},
			same("Z is Y", func(o *GatedNorm) { o.Z = o.Y }),
			same("W is Y", func(o *GatedNorm) { o.W = o.Y }),
			same("shifted", func(o *GatedNorm) { o.X = floats(30); o.Y = o.X.Floats(5) }),
		}))
}

func TestCheckMatMul(t *testing.T) {
	good := func() MatMul {
		return MatMul{W: matrix(5, 64, q4), X: floats(2*70 + 64), Y: floats(2*6 + 5), Rows: 3, XStride: 70, YStride: 6}
	}
	check(t, good, join(
		mats("W", func(o *MatMul) *Matrix { return &o.W }),
		view("X", 4, func(o *MatMul) *View { return &o.X }),
		view("Y", 4, func(o *MatMul) *View { return &o.Y }),
		size("Rows", func(o *MatMul) *int { return &o.Rows }),
		[]bad[MatMul]{
			{"X stride", func(o *MatMul) { o.XStride = 63 }, "stride 63"},
			{"Y stride", func(o *MatMul) { o.YStride = 4 }, "stride 4"},
			{"scales of bf16", func(o *MatMul) { o.W.Format = b16; o.W.Weight = room(640) }, "neither scales"},
			same("in place", func(o *MatMul) { o.Y = o.X }),
			same("interleaved too tightly", func(o *MatMul) { o.X = floats(300); o.Y, o.YStride = o.X.Floats(63), 70 }),
			same("interleaved into the next row", func(o *MatMul) { o.X = floats(300); o.Y, o.YStride = o.X.Floats(66), 70 }),
		}))
	for name, o := range map[string]func(o *MatMul){
		"dense":       func(o *MatMul) { o.XStride, o.YStride = 0, 0 },
		"f32":         func(o *MatMul) { o.W = matrix(5, 64, f32) },
		"bf16":        func(o *MatMul) { o.W = matrix(5, 64, b16) },
		"bf16 at 2":   func(o *MatMul) { o.W = matrix(5, 64, b16); o.W.Weight = View{&fakeBuffer{650}, 10} },
		"interleaved": func(o *MatMul) { o.X = floats(300); o.Y, o.YStride = o.X.Floats(65), 70 },
	} {
		m := good()
		o(&m)
		if err := m.Check(); err != nil {
			t.Errorf("matmul %s: %v", name, err)
		}
	}
	m := good()
	m.W = matrix(5, 64, b16)
	m.W.Weight.Offset++
	if m.Check() == nil {
		t.Error("bf16 at an odd offset passed")
	}
}

func TestCheckElements(t *testing.T) {
	check(t, func() Add { return Add{A: floats(9), B: floats(9), Y: floats(9), N: 9} }, join(
		view("A", 4, func(o *Add) *View { return &o.A }),
		view("B", 4, func(o *Add) *View { return &o.B }),
		view("Y", 4, func(o *Add) *View { return &o.Y }),
		size("N", func(o *Add) *int { return &o.N }),
		[]bad[Add]{
			same("shifted A", func(o *Add) { o.A = floats(12); o.Y = o.A.Floats(3) }),
			same("shifted B", func(o *Add) { o.B = floats(12); o.Y = o.B.Floats(3) }),
		}))
	check(t, func() SwiGLU { return SwiGLU{Gate: floats(6), Up: floats(6), Y: floats(6), Rows: 2, Dim: 3} }, join(
		view("Gate", 4, func(o *SwiGLU) *View { return &o.Gate }),
		view("Up", 4, func(o *SwiGLU) *View { return &o.Up }),
		view("Y", 4, func(o *SwiGLU) *View { return &o.Y }),
		size("Rows", func(o *SwiGLU) *int { return &o.Rows }),
		size("Dim", func(o *SwiGLU) *int { return &o.Dim }),
		[]bad[SwiGLU]{
			same("shifted", func(o *SwiGLU) { o.Gate = floats(12); o.Y = o.Gate.Floats(3) }),
			same("shifted Up", func(o *SwiGLU) { o.Up = floats(12); o.Y = o.Up.Floats(3) }),
		}))
	check(t, func() SigmoidGate {
		return SigmoidGate{X: floats(2 * 3 * 4), G: floats(30 + 2*9 + 4), Rows: 2, Heads: 3, Dim: 4, GRowStride: 30, GHeadStride: 9}
	}, join(
		view("X", 4, func(o *SigmoidGate) *View { return &o.X }),
		view("G", 4, func(o *SigmoidGate) *View { return &o.G }),
		size("Rows", func(o *SigmoidGate) *int { return &o.Rows }),
		size("Heads", func(o *SigmoidGate) *int { return &o.Heads }),
		size("Dim", func(o *SigmoidGate) *int { return &o.Dim }),
		[]bad[SigmoidGate]{
			{"head stride", func(o *SigmoidGate) { o.GHeadStride = 3 }, "head stride 3"},
			{"row stride", func(o *SigmoidGate) { o.GRowStride = 21 }, "stride 21"},
			same("X is G", func(o *SigmoidGate) { o.X = o.G }),
		}))
	check(t, func() Rope {
		return Rope{X: floats(30 + 2*9 + 4), Table: floats(8), Rows: 2, Heads: 3, Rotary: 4, RowStride: 30, HeadStride: 9}
	}, join(
		view("X", 4, func(o *Rope) *View { return &o.X }),
		view("Table", 4, func(o *Rope) *View { return &o.Table }),
		size("Rows", func(o *Rope) *int { return &o.Rows }),
		size("Heads", func(o *Rope) *int { return &o.Heads }),
		size("Rotary", func(o *Rope) *int { return &o.Rotary }),
		[]bad[Rope]{
			{"odd", func(o *Rope) { o.Rotary = 3 }, "even"},
			{"head stride", func(o *Rope) { o.HeadStride = 3 }, "head stride 3"},
			{"row stride", func(o *Rope) { o.RowStride = 21 }, "stride 21"},
			{"row stride zero", func(o *Rope) { o.RowStride = 0 }, "stride 0"},
			same("X is Table", func(o *Rope) { o.Table = o.X }),
		}))
}

// kvDamages are those of the segments of AppendKV and Attention, which have two: rows 0–2 at 5, row
// 3 at 8.
func kvDamages[T any](segs func(o *T) []KVSegment) []bad[T] {
	at := func(i int) func(o *T) *KVSegment { return func(o *T) *KVSegment { return &segs(o)[i] } }
	second := at(1)
	return join(
		size("segment rows", func(o *T) *int { return &second(o).Rows }),
		size("page rows", func(o *T) *int { return &second(o).KV.PageRows }),
		size("cache dim", func(o *T) *int { return &second(o).KV.Dim }),
		pageView("page", func(o *T) *KV { return &second(o).KV }, 2),
		[]bad[T]{
			{"row negative", func(o *T) { second(o).Row = -1 }, "segment 1: row -1"},
			{"row outside", func(o *T) { second(o).Row = 4 }, "do not fit"},
			{"row huge", func(o *T) { second(o).Row = math.MaxInt }, "do not fit"},
			{"position negative", func(o *T) { second(o).Pos = -1 }, "position -1"},
			{"position beyond the table", func(o *T) { second(o).Pos = 12 }, "3 pages of 4 rows are too few for the positions 12 to 12"},
			{"position huge", func(o *T) { second(o).Pos = math.MaxInt }, "too few"},
			{"short table", func(o *T) { second(o).KV.Pages = second(o).KV.Pages.First(2) }, "too few"},
			{"same rows", func(o *T) { second(o).Row = 2 }, "overlap rows 0 to 2 of segment 0"},
			{"rows around", func(o *T) { segs(o)[0].Row = 1; second(o).Row = 0; second(o).Rows = 2 }, "overlap"},
			{"other width", func(o *T) { second(o).KV.Dim = 5 }, "channels"},
			{"key offset", func(o *T) { second(o).KV.KOffset = 2 }, "multiples of 4"},
			{"value offset", func(o *T) { second(o).KV.VOffset = -4 }, "multiples of 4"},
			{"value offset outside", func(o *T) { at(0)(o).KV.VOffset += 4; second(o).KV.VOffset += 4 }, "do not fit"},
			{"other key offset", func(o *T) { second(o).KV.KOffset = 4 }, "those of segment 0"},
			{"other value offset", func(o *T) { second(o).KV.VOffset += 4 }, "those of segment 0"},
		})
}

func kvSegments() []KVSegment {
	return []KVSegment{{Row: 0, Rows: 3, Pos: 5, KV: pages(2, 4, 6)}, {Row: 3, Rows: 1, Pos: 8, KV: pages(3, 4, 6)}}
}

// int8Segments are kvSegments with 8 bits, in groups of three channels.
func int8Segments() []KVSegment {
	segs := kvSegments()
	for i := range segs {
		kv := &segs[i].KV
		kv.Format, kv.Group = KVInt8, 3
		kv.VOffset = kv.PartBytes()
		kv.Pages = rooms(kv.Pages.Len(), 2*kv.PartBytes())
	}
	return segs
}

func TestCheckInt8Cache(t *testing.T) {
	both := func(kv func(o *AppendKV, i int) *KV) []bad[AppendKV] {
		set := func(f func(kv *KV)) func(o *AppendKV) {
			return func(o *AppendKV) {
				for i := range o.Segments {
					f(kv(o, i))
				}
			}
		}
		return []bad[AppendKV]{
			{"no groups", set(func(kv *KV) { kv.Group = 0 }), "groups of 0"},
			{"groups of less than none", set(func(kv *KV) { kv.Group = -3 }), "groups of -3"},
			{"groups that do not divide", set(func(kv *KV) { kv.Group = 4 }), "groups of 4 channels do not divide the cache's 6"},
			{"no such format", set(func(kv *KV) { kv.Format = 2 }), "kv(2)"},
			{"float32 in groups", set(func(kv *KV) { kv.Format = KVF32 }), "groups of 3 channels, want 0"},
		}
	}
	check(t, func() AppendKV {
		return AppendKV{K: floats(24), V: floats(24), Segments: int8Segments()}
	}, join(
		kvDamages(func(o *AppendKV) []KVSegment { return o.Segments }),
		both(func(o *AppendKV, i int) *KV { return &o.Segments[i].KV }),
		[]bad[AppendKV]{
			{"two formats", func(o *AppendKV) { o.Segments[1].KV.Format, o.Segments[1].KV.Group = KVF32, 0 }, "segment 0 int8 in groups of 3"},
			{"two groups", func(o *AppendKV) { o.Segments[1].KV.Group = 2 }, "groups of 2"},
			{"keys over values", func(o *AppendKV) { o.Segments[0].KV.VOffset -= 4; o.Segments[1].KV.VOffset -= 4 }, "overlap"},
		}))
	check(t, func() Attention {
		return Attention{Q: floats(48), Y: floats(48), QRowStride: 12, QHeadStride: 3, Heads: 4, KVHeads: 2, HeadDim: 3, Scale: 1, Segments: int8Segments()}
	}, join(
		kvDamages(func(o *Attention) []KVSegment { return o.Segments }),
		[]bad[Attention]{
			{"groups over heads", func(o *Attention) { o.Segments[0].KV.Group, o.Segments[1].KV.Group = 6, 6 }, "do not divide HeadDim 3"},
			{"groups over values", func(o *Attention) {
				o.KVHeads, o.HeadDim, o.QHeadStride, o.QRowStride, o.ValueDim = 1, 6, 3, 12, 4
				o.Heads = 1
			}, "do not divide ValueDim 4"},
		}))
	check(t, func() LatentAttention {
		return LatentAttention{Q: floats(4 * 2 * 36), Y: floats(4 * 2 * 3), QRowStride: 72, QHeadStride: 36, Keys: matrix(2*36, 3, f32),
			Values: matrix(2*36, 3, f32), KeyRows: 36, ValueRows: 36, FirstValue: 33, Heads: 2, Rank: 3, Nope: 33, Rope: 3, ValueDim: 3, Scale: 1,
			Segments: int8Segments()}
	}, []bad[LatentAttention]{
		{"groups over the latent", func(o *LatentAttention) { o.Segments[0].KV.Group, o.Segments[1].KV.Group = 2, 2 }, "do not divide Rank 3"},
	})
}

func TestCheckCache(t *testing.T) {
	check(t, func() AppendKV {
		return AppendKV{K: floats(3*7 + 6), V: floats(24), KStride: 7, Segments: kvSegments()}
	}, join(
		view("K", 4, func(o *AppendKV) *View { return &o.K }),
		view("V", 4, func(o *AppendKV) *View { return &o.V }),
		kvDamages(func(o *AppendKV) []KVSegment { return o.Segments }),
		[]bad[AppendKV]{
			{"no segments", func(o *AppendKV) { o.Segments = nil }, "want at least"},
			{"K stride", func(o *AppendKV) { o.KStride = 5 }, "stride 5"},
			{"V stride", func(o *AppendKV) { o.VStride = 5 }, "stride 5"},
			{"keys over values", func(o *AppendKV) { o.Segments[0].KV.VOffset, o.Segments[1].KV.VOffset = 92, 92 }, "overlap"},
		}))
	attention := func() Attention {
		return Attention{Q: floats(3*40 + 3*9 + 3), Y: floats(4 * 12), QRowStride: 40, QHeadStride: 9, Heads: 4, KVHeads: 2,
			HeadDim: 3, Scale: 1, Segments: kvSegments()}
	}
	check(t, attention, join(
		view("Q", 4, func(o *Attention) *View { return &o.Q }),
		view("Y", 4, func(o *Attention) *View { return &o.Y }),
		pageView("first page", func(o *Attention) *KV { return &o.Segments[1].KV }, 0),
		size("Heads", func(o *Attention) *int { return &o.Heads }),
		size("KVHeads", func(o *Attention) *int { return &o.KVHeads }),
		size("HeadDim", func(o *Attention) *int { return &o.HeadDim }),
		kvDamages(func(o *Attention) []KVSegment { return o.Segments }),
		[]bad[Attention]{
			{"no segments", func(o *Attention) { o.Segments = nil }, "want at least"},
			{"heads do not divide", func(o *Attention) { o.Heads = 3 }, "does not divide"},
			{"head stride", func(o *Attention) { o.QHeadStride = 2 }, "head stride 2"},
			{"row stride", func(o *Attention) { o.QRowStride = 29 }, "stride 29"},
			{"cache of other heads", func(o *Attention) { o.KVHeads = 1 }, "want KVHeads·HeadDim = 3"},
			same("in place", func(o *Attention) { o.Y = o.Q }),
		}))
}

// stateDamages are those of the segments of CausalConv and DeltaRule, which have two: rows 0–2 and
// row 3.
func stateDamages[T any](segs func(o *T) []StateSegment) []bad[T] {
	return join(
		size("segment rows", func(o *T) *int { return &segs(o)[1].Rows }),
		view("state", 4, func(o *T) *View { return &segs(o)[1].State }),
		[]bad[T]{
			{"row negative", func(o *T) { segs(o)[1].Row = -1 }, "segment 1: row -1"},
			{"row outside", func(o *T) { segs(o)[1].Row = 4 }, "do not fit"},
			{"row huge", func(o *T) { segs(o)[1].Row = math.MaxInt }, "do not fit"},
			{"same rows", func(o *T) { segs(o)[1].Row = 0 }, "overlap rows 0 to 2 of segment 0"},
			{"same state", func(o *T) { segs(o)[1].State = segs(o)[0].State }, "shares its state with segment 0"},
		})
}

func TestCheckRecurrent(t *testing.T) {
	check(t, func() CausalConv {
		return CausalConv{X: floats(20), W: floats(20), Y: floats(20), Channels: 5, Kernel: 4,
			Segments: []StateSegment{{0, 3, floats(15)}, {3, 1, floats(15)}}}
	}, join(
		view("X", 4, func(o *CausalConv) *View { return &o.X }),
		view("W", 4, func(o *CausalConv) *View { return &o.W }),
		view("Y", 4, func(o *CausalConv) *View { return &o.Y }),
		size("Channels", func(o *CausalConv) *int { return &o.Channels }),
		size("Kernel", func(o *CausalConv) *int { return &o.Kernel }),
		stateDamages(func(o *CausalConv) []StateSegment { return o.Segments }),
		[]bad[CausalConv]{
			{"no segments", func(o *CausalConv) { o.Segments = nil }, "want at least"},
			same("in place", func(o *CausalConv) { o.Y = o.X }),
			same("W is Y", func(o *CausalConv) { o.W = o.Y }),
		}))
	one := CausalConv{X: floats(5), W: floats(5), Y: floats(5), Channels: 5, Kernel: 1, Segments: []StateSegment{{0, 1, View{}}}}
	if err := one.Check(); err != nil {
		t.Errorf("causalconv of one tap without a state: %v", err)
	}
	one.Segments = append(one.Segments, one.Segments[0])
	if one.Check() == nil {
		t.Error("causalconv of one tap with a row in two segments passed")
	}
	check(t, func() DeltaRule {
		return DeltaRule{QKV: floats(4 * (2*2*3 + 4*5)), Alpha: floats(16), Beta: floats(16), ALog: floats(4), DtBias: floats(4),
			Y: floats(4 * 4 * 5), KeyHeads: 2, ValueHeads: 4, KeyDim: 3, ValueDim: 5,
			Segments: []StateSegment{{0, 3, floats(60)}, {3, 1, floats(60)}}}
	}, join(
		view("QKV", 4, func(o *DeltaRule) *View { return &o.QKV }),
		view("Alpha", 4, func(o *DeltaRule) *View { return &o.Alpha }),
		view("Beta", 4, func(o *DeltaRule) *View { return &o.Beta }),
		view("ALog", 4, func(o *DeltaRule) *View { return &o.ALog }),
		view("DtBias", 4, func(o *DeltaRule) *View { return &o.DtBias }),
		view("Y", 4, func(o *DeltaRule) *View { return &o.Y }),
		size("KeyHeads", func(o *DeltaRule) *int { return &o.KeyHeads }),
		size("ValueHeads", func(o *DeltaRule) *int { return &o.ValueHeads }),
		size("KeyDim", func(o *DeltaRule) *int { return &o.KeyDim }),
		size("ValueDim", func(o *DeltaRule) *int { return &o.ValueDim }),
		stateDamages(func(o *DeltaRule) []StateSegment { return o.Segments }),
		[]bad[DeltaRule]{
			{"no segments", func(o *DeltaRule) { o.Segments = nil }, "want at least"},
			{"heads do not divide", func(o *DeltaRule) { o.KeyHeads = 3 }, "does not divide"},
			same("QKV is Y", func(o *DeltaRule) { o.Y = o.QKV }),
			same("Alpha in Y", func(o *DeltaRule) { o.Alpha = o.Y }),
			same("Beta in Y", func(o *DeltaRule) { o.Beta = o.Y }),
			same("ALog in Y", func(o *DeltaRule) { o.ALog = o.Y }),
			same("DtBias in Y", func(o *DeltaRule) { o.DtBias = o.Y }),
		}))
}

func TestCheckExperts(t *testing.T) {
	expert := func() Expert {
		return Expert{Gate: matrix(32, 64, q4), Up: matrix(32, 64, q4), Down: matrix(64, 32, q4)}
	}
	good := func() Experts {
		return Experts{X: floats(3 * 64), Y: floats(6 * 64), Scratch: floats(6 * 64), Rows: 3, TopK: 2,
			Table: &ExpertTable{Experts: []Expert{expert(), expert()}}, Picks: List[int32]{Host: []int32{0, 1, -1, 0, -7, 1}}}
	}
	damages := func(table func(o *Experts) *ExpertTable) []bad[Experts] {
		return join(
			mats("Gate", func(o *Experts) *Matrix { return &table(o).Experts[1].Gate }),
			mats("Up", func(o *Experts) *Matrix { return &table(o).Experts[1].Up }),
			mats("Down", func(o *Experts) *Matrix { return &table(o).Experts[1].Down }),
			[]bad[Experts]{
				{"none", func(o *Experts) { table(o).Experts = nil }, ""},
				{"first gate empty", func(o *Experts) { table(o).Experts[0].Gate.Rows = 0 }, "at least [1, 1]"},
				{"first gate negative", func(o *Experts) { table(o).Experts[0].Gate.Rows = -32 }, ""},
				{"other shape", func(o *Experts) { table(o).Experts[1].Up = matrix(33, 64, q4) }, "want [32, 64]"},
				{"turned", func(o *Experts) { table(o).Experts[1].Down = matrix(32, 64, q4) }, "want [64, 32]"},
				{"other format", func(o *Experts) { table(o).Experts[1].Down = matrix(64, 32, f32) }, "formats"},
			})
	}
	check(t, good, join(
		damages(func(o *Experts) *ExpertTable { return o.Table }),
		view("X", 4, func(o *Experts) *View { return &o.X }),
		view("Y", 4, func(o *Experts) *View { return &o.Y }),
		view("Scratch", 4, func(o *Experts) *View { return &o.Scratch }),
		size("Rows", func(o *Experts) *int { return &o.Rows }),
		size("TopK", func(o *Experts) *int { return &o.TopK }),
		[]bad[Experts]{
			{"no table", func(o *Experts) { o.Table = nil }, "no Table"},
			{"place without form", func(o *Experts) { o.Table.At = room(2 * TableBytes) }, "never written"},
			{"pick too large", func(o *Experts) { o.Picks.Host[3] = 2 }, "pick 2 at index 3"},
			{"picks short", func(o *Experts) { o.Picks.Host = o.Picks.Host[:5] }, "5 Picks, want 6"},
			{"picks in two places", func(o *Experts) { o.Picks.At = floats(6) }, "lie on the device and travel"},
			{"picks on the device short", func(o *Experts) { o.Picks = List[int32]{At: floats(5)} }, "do not fit"},
			{"picks in Y", func(o *Experts) { o.Picks = List[int32]{At: o.Y} }, "overlap"},
			same("X is Y", func(o *Experts) { o.X = o.Y }),
			same("X is Scratch", func(o *Experts) { o.X = o.Scratch }),
			same("Y is Scratch", func(o *Experts) { o.Y = o.Scratch }),
		}))
	// A table that lies on the device is looked at when it is written there, and then no more.
	e := good()
	check(t, func() Tabulate {
		return Tabulate{Table: &ExpertTable{Experts: []Expert{expert(), expert()}, At: room(2 * TableBytes)}}
	}, join(
		mats("Down", func(o *Tabulate) *Matrix { return &o.Table.Experts[1].Down }),
		view("Table.At", 8, func(o *Tabulate) *View { return &o.Table.At })[1:],
		[]bad[Tabulate]{
			{"no table", func(o *Tabulate) { o.Table = nil }, "no Table"},
			{"no place", func(o *Tabulate) { o.Table.At = View{} }, "no place"},
		}))
	e.Table.At = room(2 * TableBytes)
	e.Picks = List[int32]{At: floats(6)}
	testTabulated(t, e)
}

// testTabulated wants a table on the device to be refused until a device has accepted the Commands
// that write it, whatever Check was asked before.
func testTabulated(t *testing.T, e Experts) {
	use := func() (c Commands) { c.EncodeExperts(e); return c }
	write := func() (c Commands) { c.EncodeTabulate(Tabulate{Table: e.Table}); return c }
	refused := func(when string) {
		t.Helper()
		if c := use(); c.Check() == nil || e.Check() == nil {
			t.Errorf("%s: experts of a table that no device has are accepted", when)
		}
	}
	refused("at first")
	both := write()
	both.EncodeExperts(e)
	both.EncodeFill(Fill{})
	if e := (*OpError)(nil); !errors.As(both.Check(), &e) || e.Op != "fill" {
		t.Errorf("a table written and used at once, and a bad operation: %v", both.Check())
	}
	refused("after Commands that were refused")
	late := use()
	late.EncodeTabulate(Tabulate{Table: e.Table})
	if late.Check() == nil {
		t.Error("experts of a table that a later operation writes are accepted")
	}
	written := write()
	if err := written.Check(); err != nil {
		t.Fatal(err)
	}
	refused("after a Check alone")
	written.Accept()
	if c := use(); c.Check() != nil || e.Check() != nil {
		t.Errorf("with a table on the device: %v, %v", c.Check(), e.Check())
	}
}

func TestCheckCombine(t *testing.T) {
	check(t, func() Combine {
		return Combine{Routed: floats(3 * 2 * 5), Shared: floats(15), SharedGate: floats(3), Residual: floats(15), Y: floats(15),
			Weights: List[float32]{Host: make([]float32, 6)}, Rows: 3, TopK: 2, Dim: 5}
	}, join(
		view("Routed", 4, func(o *Combine) *View { return &o.Routed }),
		view("Residual", 4, func(o *Combine) *View { return &o.Residual }),
		view("Y", 4, func(o *Combine) *View { return &o.Y }),
		view("Shared", 4, func(o *Combine) *View { return &o.Shared })[1:],
		view("SharedGate", 4, func(o *Combine) *View { return &o.SharedGate })[1:],
		size("Rows", func(o *Combine) *int { return &o.Rows }),
		size("TopK", func(o *Combine) *int { return &o.TopK }),
		size("Dim", func(o *Combine) *int { return &o.Dim }),
		[]bad[Combine]{
			{"weights short", func(o *Combine) { o.Weights.Host = o.Weights.Host[:5] }, "5 Weights"},
			{"weights long", func(o *Combine) { o.Weights.Host = make([]float32, 7) }, "7 Weights"},
			{"weights in two places", func(o *Combine) { o.Weights.At = floats(6) }, "lie on the device and travel"},
			{"weights in Y", func(o *Combine) { o.Weights = List[float32]{At: o.Y} }, "overlap"},
			{"gate alone", func(o *Combine) { o.Shared = View{} }, "without Shared"},
			same("Routed is Y", func(o *Combine) { o.Y = o.Routed }),
			same("Shared is Y", func(o *Combine) { o.Y = o.Shared }),
			same("SharedGate in Y", func(o *Combine) { o.SharedGate = o.Y }),
			same("shifted", func(o *Combine) { o.Residual = floats(30); o.Y = o.Residual.Floats(5) }),
		}))
}

func TestCheckRoute(t *testing.T) {
	check(t, func() Route {
		return Route{Scores: floats(3 * 8), Bias: floats(8), Picks: floats(6), Weights: floats(6), Rows: 3, Experts: 8, TopK: 2,
			Rule: route.Rule{NGroup: 4, TopKGroup: 1}}
	}, join(
		view("Scores", 4, func(o *Route) *View { return &o.Scores }),
		view("Bias", 4, func(o *Route) *View { return &o.Bias })[1:],
		view("Picks", 4, func(o *Route) *View { return &o.Picks }),
		view("Weights", 4, func(o *Route) *View { return &o.Weights }),
		size("Rows", func(o *Route) *int { return &o.Rows }),
		size("Experts", func(o *Route) *int { return &o.Experts }),
		size("TopK", func(o *Route) *int { return &o.TopK }),
		[]bad[Route]{
			{"too many picks", func(o *Route) { o.TopK = 9; o.Picks, o.Weights = floats(27), floats(27) }, "9 picks of 8"},
			{"groups of no size", func(o *Route) { o.Rule.NGroup = 3 }, "3 groups"},
			{"no group kept", func(o *Route) { o.Rule.TopKGroup = 0 }, "0 of 4 groups"},
			{"more kept than there are", func(o *Route) { o.Rule.TopKGroup = 5 }, "5 of 4 groups"},
			{"kept too few", func(o *Route) { o.TopK = 3; o.Picks, o.Weights = floats(9), floats(9) }, "for 3 picks"},
			same("Picks are Scores", func(o *Route) { o.Picks = o.Scores }),
			same("Weights are Picks", func(o *Route) { o.Weights = o.Picks }),
			same("Weights are Bias", func(o *Route) { o.Weights = o.Bias }),
		}))
}

func TestCheckTopK(t *testing.T) {
	check(t, func() TopK {
		return TopK{Logits: floats(3 * 70), Values: floats(3 * 64), Indices: floats(3 * 64), Stats: floats(6), Rows: 3, Vocab: 70, K: 64}
	}, join(
		view("Logits", 4, func(o *TopK) *View { return &o.Logits }),
		view("Values", 4, func(o *TopK) *View { return &o.Values }),
		view("Indices", 4, func(o *TopK) *View { return &o.Indices }),
		view("Stats", 4, func(o *TopK) *View { return &o.Stats }),
		size("Rows", func(o *TopK) *int { return &o.Rows }),
		size("Vocab", func(o *TopK) *int { return &o.Vocab }),
		size("K", func(o *TopK) *int { return &o.K }),
		[]bad[TopK]{
			{"too many", func(o *TopK) { o.K = 65; o.Values, o.Indices = floats(3*65), floats(3*65) }, "at most 64"},
			{"more than there are", func(o *TopK) { o.Vocab = 63 }, "63 of the vocabulary"},
			same("Values is Logits", func(o *TopK) { o.Values = o.Logits }),
			same("Indices is Values", func(o *TopK) { o.Indices = o.Values }),
			same("Stats is Indices", func(o *TopK) { o.Stats = o.Indices }),
		}))
}

func TestCommandsCheck(t *testing.T) {
	var c Commands
	c.EncodeFill(Fill{Dst: room(4), Bytes: 4})
	c.EncodeFill(Fill{Dst: room(4), Bytes: 5})
	var e *OpError
	err := c.Check()
	if !errors.As(err, &e) || !strings.Contains(err.Error(), "operation 1 of 2") {
		t.Errorf("error %v, want the *OpError of operation 1", err)
	}
	c.Reset()
	c.EncodeFill(Fill{Dst: room(4), Bytes: 4})
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

func TestCheckHeads(t *testing.T) {
	good := func() HeadMatMul {
		return HeadMatMul{W: matrix(3*5, 64, q4), X: floats(2*210 + 2*70 + 64), Y: floats(2*20 + 2*6 + 4), Rows: 3, Heads: 3, In: 64, Out: 4,
			HeadRows: 5, FirstRow: 1, XRowStride: 210, XHeadStride: 70, YRowStride: 20, YHeadStride: 6}
	}
	damages := func(cols string) []bad[HeadMatMul] {
		return join(
			view("W", 4, func(o *HeadMatMul) *View { return &o.W.Weight }),
			view("X", 4, func(o *HeadMatMul) *View { return &o.X }),
			view("Y", 4, func(o *HeadMatMul) *View { return &o.Y }),
			size("Rows", func(o *HeadMatMul) *int { return &o.Rows }),
			size("Heads", func(o *HeadMatMul) *int { return &o.Heads }),
			size("In", func(o *HeadMatMul) *int { return &o.In }),
			size("Out", func(o *HeadMatMul) *int { return &o.Out }),
			[]bad[HeadMatMul]{
				{"columns", func(o *HeadMatMul) { o.W = matrix(15, 32, q4) }, cols},
				{"rows of a head", func(o *HeadMatMul) { o.HeadRows = 4 }, "heads of 4"},
				{"first row", func(o *HeadMatMul) { o.FirstRow = 2 }, "from row 2 on"},
				{"first row negative", func(o *HeadMatMul) { o.FirstRow = -1 }, "from row -1 on"},
				{"too few heads", func(o *HeadMatMul) { o.W = matrix(14, 64, q4) }, "has 14 rows"},
				same("in place", func(o *HeadMatMul) { o.X = floats(1000); o.Y = o.X }),
			})
	}
	check(t, good, damages("has 32 columns, want 64"))
	check(t, func() HeadMatMul {
		o := good()
		o.Transposed, o.In, o.Out = true, 4, 64
		o.X, o.Y = o.Y, o.X
		o.XRowStride, o.XHeadStride, o.YRowStride, o.YHeadStride = 20, 6, 210, 70
		return o
	}, damages("has 32 columns, want 64"))
	check(t, func() CopyHeads {
		return CopyHeads{X: floats(20 + 2*6 + 4), Y: floats(30 + 2*7 + 4), Rows: 2, Heads: 3, Dim: 4, XRowStride: 20, XHeadStride: 6,
			YRowStride: 30, YHeadStride: 7}
	}, join(
		view("X", 4, func(o *CopyHeads) *View { return &o.X }),
		view("Y", 4, func(o *CopyHeads) *View { return &o.Y }),
		size("Rows", func(o *CopyHeads) *int { return &o.Rows }),
		size("Heads", func(o *CopyHeads) *int { return &o.Heads }),
		size("Dim", func(o *CopyHeads) *int { return &o.Dim }),
		[]bad[CopyHeads]{
			{"head stride", func(o *CopyHeads) { o.XHeadStride = 3 }, "head stride 3"},
			same("in place", func(o *CopyHeads) { o.X = floats(1000); o.Y = o.X }),
		}))
}

func TestCheckLatent(t *testing.T) {
	keysOnly := func() []KVSegment {
		segs := kvSegments()
		for i := range segs {
			segs[i].KV.VOffset = segs[i].KV.KOffset
			segs[i].KV.Pages = rooms(segs[i].KV.Pages.Len(), 4*4*6)
		}
		return segs
	}
	if err := (&AppendKV{K: floats(24), Segments: keysOnly()}).Check(); err != nil {
		t.Errorf("appendkv of keys alone: %v", err)
	}
	shared := func() Attention {
		return Attention{Q: floats(4 * 12), Y: floats(4 * 2 * 5), QRowStride: 12, QHeadStride: 6, Heads: 2, KVHeads: 1, HeadDim: 6, ValueDim: 5,
			Scale: 1, Segments: keysOnly()}
	}
	check(t, shared, join(
		view("Y", 4, func(o *Attention) *View { return &o.Y }),
		[]bad[Attention]{
			{"value dim", func(o *Attention) { o.ValueDim = 7 }, "ValueDim 7"},
			{"value dim negative", func(o *Attention) { o.ValueDim = -1 }, "ValueDim -1"},
			{"two key-value heads", func(o *Attention) { o.KVHeads, o.HeadDim, o.ValueDim = 2, 3, 3 }, "ValueDim 3"},
		}))
	check(t, func() LatentAttention {
		return LatentAttention{Q: floats(4 * 2 * 35), Y: floats(4 * 2 * 3), QRowStride: 70, QHeadStride: 35, Keys: matrix(2*36, 4, f32),
			Values: matrix(2*36, 4, f32), KeyRows: 36, ValueRows: 36, FirstValue: 33, Heads: 2, Rank: 4, Nope: 33, Rope: 2, ValueDim: 3, Scale: 1,
			Segments: keysOnly()}
	}, join(
		view("Q", 4, func(o *LatentAttention) *View { return &o.Q }),
		view("Y", 4, func(o *LatentAttention) *View { return &o.Y }),
		view("Keys", 4, func(o *LatentAttention) *View { return &o.Keys.Weight }),
		view("Values", 4, func(o *LatentAttention) *View { return &o.Values.Weight }),
		size("Heads", func(o *LatentAttention) *int { return &o.Heads }),
		size("Rank", func(o *LatentAttention) *int { return &o.Rank }),
		size("Nope", func(o *LatentAttention) *int { return &o.Nope }),
		size("Rope", func(o *LatentAttention) *int { return &o.Rope }),
		size("ValueDim", func(o *LatentAttention) *int { return &o.ValueDim }),
		[]bad[LatentAttention]{
			{"no segments", func(o *LatentAttention) { o.Segments = nil }, "want at least"},
			{"keys the other way round", func(o *LatentAttention) { o.KeysTransposed = true }, "want 33 and 4"},
			{"first value", func(o *LatentAttention) { o.FirstValue = 34 }, "from row 34 on"},
			{"key rows", func(o *LatentAttention) { o.KeyRows = 32 }, "heads of 32"},
			{"other cache", func(o *LatentAttention) { o.Rope, o.QHeadStride = 1, 34 }, "want Rank+Rope = 5"},
			same("in place", func(o *LatentAttention) { o.Y = o.Q }),
		}))
}
