package gpu

import (
	"math"
	"testing"
)

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
	fetch := func() Fetch {
		copies := []HostCopy{{room(3), make([]byte, 3)}, {room(7), make([]byte, 7)}}
		return Fetch{Lane: 1, Copies: copies}
	}
	check(t, fetch, join(
		view("Dst", 1, func(o *Fetch) *View { return &o.Copies[1].Dst }),
		[]bad[Fetch]{
			{"no copies", func(o *Fetch) { o.Copies = nil }, "want at least"},
			{"no bytes", func(o *Fetch) { o.Copies[1].Src = nil }, "copy 1: bytes of Src"},
			{"no such lane", func(o *Fetch) { o.Lane = FetchLanes }, "Lane is 2"},
		}))
	check(t, func() Fetched { return Fetched{Lane: 1} }, []bad[Fetched]{
		{"no such lane", func(o *Fetched) { o.Lane = -1 }, "Lane is -1"},
	})
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
	check(t, func() LayerNorm {
		return LayerNorm{X: floats(21), W: floats(7), B: floats(7), Y: floats(21), Vectors: 3, Dim: 7, Eps: 1e-6}
	}, join(
		view("X", 4, func(o *LayerNorm) *View { return &o.X }),
		view("Y", 4, func(o *LayerNorm) *View { return &o.Y }),
		view("W", 4, func(o *LayerNorm) *View { return &o.W }),
		view("B", 4, func(o *LayerNorm) *View { return &o.B }),
		size("Vectors", func(o *LayerNorm) *int { return &o.Vectors }),
		size("Dim", func(o *LayerNorm) *int { return &o.Dim }),
		[]bad[LayerNorm]{
			{"eps negative", func(o *LayerNorm) { o.Eps = -1 }, "eps"},
			same("W is Y", func(o *LayerNorm) { o.W = o.Y }),
			same("B is Y", func(o *LayerNorm) { o.B = o.Y }),
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
			{"scales of bf16", func(o *MatMul) { o.W.Format = b16; o.W.Weight = room(640) }, "no scales"},
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
			{"no limit", func(o *SwiGLU) { o.Clamp.Alpha = 1 }, "Clamp is {0 1}"},
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
