package launch

import (
	"errors"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// kernels returns the names of the kernels that commands are launched as.
func kernels(t *testing.T, build func(c *gpu.Commands, at func(i int) gpu.View)) (names []string) {
	t.Helper()
	f := &fake{record: true}
	d := openFake(t, f)
	v, q := newBuffer(t, d, 64<<14), newQueue(t, d)
	var c gpu.Commands
	build(&c, func(i int) gpu.View { return v.At(i << 14) })
	if err := wait(t, q, &c); err != nil {
		t.Fatal(err)
	}
	for _, l := range f.launched {
		names = append(names, l.Kernel.Name)
	}
	return names
}

func affine(rows, cols int, at gpu.View) gpu.Matrix {
	return gpu.Matrix{Rows: rows, Cols: cols, Format: quant.Affine(4, 64).In(quant.Panels, quant.PanelRows), Weight: at, Scales: at.At(4096), Biases: at.At(8192)}
}

// headOps is the way of queries, keys and values of 2 rows to attention.
func headOps(c *gpu.Commands, at func(i int) gpu.View, format gpu.KVFormat) {
	const rows, heads, kvHeads, dim = 2, 4, 2, 32
	kv := gpu.KV{KVLayout: gpu.KVLayout{PageRows: 8, Dim: kvHeads * dim, VOffset: 4096, Format: format}, Pages: gpu.PagesOf(at(5))}
	if format == gpu.KVInt8 {
		kv.Group = dim
	}
	gpu.Encode(c, gpu.RMSNorm{X: at(0), W: at(3), Y: at(0), Vectors: rows * heads, Dim: dim, XStride: 2 * dim, YStride: 2 * dim, Eps: 1e-6})
	gpu.Encode(c, gpu.RMSNorm{X: at(1), W: at(3), Y: at(1), Vectors: rows * kvHeads, Dim: dim, Eps: 1e-6})
	gpu.Encode(c, gpu.Rope{X: at(0), Table: at(4), Rows: rows, Heads: heads, Rotary: 16, RowStride: 2 * heads * dim, HeadStride: 2 * dim})
	gpu.Encode(c, gpu.Rope{X: at(1), Table: at(4), Rows: rows, Heads: kvHeads, Rotary: 16, RowStride: kvHeads * dim, HeadStride: dim})
	gpu.Encode(c, gpu.AppendKV{K: at(1), V: at(2), Cache: kv.KVLayout, Segments: []gpu.KVSegment{{Rows: 1, Pos: 3, Pages: kv.Pages}, {Row: 1, Rows: 1, Pos: 7, Pages: kv.Pages}}})
}

// TestJoins says which kernels operations become that follow one another.
func TestJoins(t *testing.T) {
	const rows, dim = 2, 64
	product := func(at func(int) gpu.View, w, y int) gpu.MatMul {
		return gpu.MatMul{W: affine(16*w, dim, at(w)), X: at(0), Y: at(y), Rows: rows}
	}
	for _, c := range []struct {
		name  string
		build func(c *gpu.Commands, at func(i int) gpu.View)
		want  []string
	}{
		{"five products", func(c *gpu.Commands, at func(int) gpu.View) {
			for i := range 5 {
				gpu.Encode(c, product(at, 1+i, 10+i))
			}
		}, []string{"matmuls", "matmul"}},
		{"products of other inputs, formats, rows and biases", func(c *gpu.Commands, at func(int) gpu.View) {
			o := product(at, 1, 10)
			gpu.Encode(c, o)
			o.X = at(20)
			gpu.Encode(c, o)
			o.W.Format.Layout = quant.Rows
			gpu.Encode(c, o)
			o.Rows = 3
			gpu.Encode(c, o)
			o.Bias = at(21)
			gpu.Encode(c, o)
			o.XStride = 2 * dim
			gpu.Encode(c, o)
		}, []string{"matmul", "matmul", "matmul", "matmul", "matmul", "matmul"}},
		{"a product that reads another one's result", func(c *gpu.Commands, at func(int) gpu.View) {
			gpu.Encode(c, product(at, 1, 10))
			o := product(at, 1, 12)
			o.W.Weight = at(10)
			gpu.Encode(c, o)
			gpu.Encode(c, product(at, 1, 13))
		}, []string{"matmul", "matmuls"}},
		{"gate, up and SwiGLU", func(c *gpu.Commands, at func(int) gpu.View) {
			gate, up := product(at, 1, 10), product(at, 1, 11)
			gpu.Encode(c, gate)
			gpu.Encode(c, up)
			gpu.Encode(c, gpu.SwiGLU{Gate: gate.Y, Up: up.Y, Y: gate.Y, Rows: rows, Dim: 16})
			gpu.Encode(c, gate)
			gpu.Encode(c, up)
			gpu.Encode(c, gpu.SwiGLU{Gate: up.Y, Up: gate.Y, Y: gate.Y, Rows: rows, Dim: 16})
		}, []string{"matmul_swiglu", "matmuls", "swiglu"}},
		{"sums and norms", func(c *gpu.Commands, at func(int) gpu.View) {
			for _, n := range []gpu.RMSNorm{{X: at(2), Y: at(3), Vectors: rows, Dim: dim}, {X: at(2), Y: at(2), Vectors: rows, Dim: dim}, {X: at(4), Y: at(3), Vectors: rows, Dim: dim},
				{X: at(2), Y: at(3), Vectors: 1, Dim: dim}, {X: at(2), Y: at(0).Floats(1), Vectors: rows, Dim: dim}} {
				gpu.Encode(c, gpu.Add{A: at(0), B: at(1), Y: at(2), N: rows * dim})
				gpu.Encode(c, n)
			}
		}, []string{"add_norm", "add_norm", "add", "rms_norm", "add", "rms_norm", "add", "rms_norm"}},
		{"combine and norm", func(c *gpu.Commands, at func(int) gpu.View) {
			o := gpu.Combine{Routed: at(0), Residual: at(1), Y: at(1), Weights: gpu.List[float32]{Host: make([]float32, rows*2)}, Rows: rows, TopK: 2, Dim: dim}
			gpu.Encode(c, o)
			gpu.Encode(c, gpu.RMSNorm{X: at(1), Y: at(2), Vectors: rows, Dim: dim})
			gpu.Encode(c, o)
			gpu.Encode(c, gpu.RMSNorm{X: at(1), Y: at(0), Vectors: rows, Dim: dim})
		}, []string{"combine_norm", "combine", "rms_norm"}},
		{"heads", func(c *gpu.Commands, at func(int) gpu.View) { headOps(c, at, gpu.KVF32) }, []string{"head_vectors"}},
		{"heads of rows out of order", func(c *gpu.Commands, at func(int) gpu.View) {
			headOps(c, at, gpu.KVF32)
			o := c.Ops()[4].(*gpu.AppendKV)
			o.Segments[0].Row, o.Segments[1].Row = 1, 0
		}, []string{"head_vectors", "append_kv"}},
		{"heads, 8 bits", func(c *gpu.Commands, at func(int) gpu.View) { headOps(c, at, gpu.KVInt8) }, []string{"head_vectors"}},
		{"latents", func(c *gpu.Commands, at func(int) gpu.View) {
			const heads, rank, nope, rotary = 2, 32, 16, 8
			const kept, width = rank + rotary, nope + rotary
			kv := gpu.KV{KVLayout: gpu.KVLayout{PageRows: 8, Dim: kept}, Pages: gpu.PagesOf(at(4))}
			gpu.Encode(c, gpu.RMSNorm{X: at(0), W: at(3), Y: at(0), Vectors: rows, Dim: rank, XStride: kept, YStride: kept})
			gpu.Encode(c, gpu.Rope{X: at(0).Floats(rank), Table: at(2), Rows: rows, Heads: 1, Rotary: rotary, RowStride: kept, HeadStride: rotary})
			gpu.Encode(c, gpu.Rope{X: at(1).Floats(nope), Table: at(2), Rows: rows, Heads: heads, Rotary: rotary, RowStride: heads * width, HeadStride: width})
			gpu.Encode(c, gpu.AppendKV{K: at(0), Cache: kv.KVLayout, Segments: []gpu.KVSegment{{Rows: rows, Pages: kv.Pages}}})
			gpu.Encode(c, gpu.CopyHeads{X: at(1).Floats(nope), Y: at(5).Floats(rank), Rows: rows, Heads: heads, Dim: rotary,
				XRowStride: heads * width, XHeadStride: width, YRowStride: heads * kept, YHeadStride: kept})
		}, []string{"head_vectors"}},
		{"norms of whole rows", func(c *gpu.Commands, at func(int) gpu.View) {
			gpu.Encode(c, gpu.RMSNorm{X: at(0), W: at(3), Y: at(0), Vectors: rows, Dim: 256})
			gpu.Encode(c, gpu.RMSNorm{X: at(1), W: at(3), Y: at(1), Vectors: rows, Dim: 128})
			gpu.Encode(c, gpu.Rope{X: at(0), Table: at(4), Rows: rows, Heads: 4, Rotary: 16, RowStride: 256, HeadStride: 64})
			gpu.Encode(c, gpu.Rope{X: at(1), Table: at(4), Rows: rows, Heads: 2, Rotary: 16, RowStride: 128, HeadStride: 64})
		}, []string{"head_vectors", "head_vectors"}},
		{"norms of long vectors", func(c *gpu.Commands, at func(int) gpu.View) {
			gpu.Encode(c, gpu.RMSNorm{X: at(0), W: at(3), Y: at(0), Vectors: 1, Dim: 2048})
			gpu.Encode(c, gpu.Rope{X: at(0), Table: at(4), Rows: 1, Heads: 64, Rotary: 16, RowStride: 2048, HeadStride: 32})
			gpu.Encode(c, gpu.Rope{X: at(1), Table: at(4), Rows: 1, Heads: 2, Rotary: 16, RowStride: 64, HeadStride: 32})
		}, []string{"rms_norm", "head_vectors"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := kernels(t, c.build); !slices.Equal(got, c.want) {
				t.Errorf("kernels %v, want %v", got, c.want)
			}
		})
	}
}

// A joined launch that fails is reported as its first operation, and one in the middle that does
// not fit as itself, before anything runs.
func TestJoinedFails(t *testing.T) {
	f := &fake{record: true}
	d := openFake(t, f)
	v, q := newBuffer(t, d, 1<<16), newQueue(t, d)
	var c gpu.Commands
	gpu.Encode(&c, gpu.Add{A: v, B: v, Y: v.Floats(64), N: 64})
	gpu.Encode(&c, gpu.RMSNorm{X: v.Floats(64), Y: v.Floats(128), Vectors: 1, Dim: 64})
	if err := wait(t, q, &c); err != nil {
		t.Fatal(err)
	}
	if len(f.launched) != 1 {
		t.Fatalf("%d launches, want 1", len(f.launched))
	}
	f.launchErr = errors.New("the device is gone")
	var op *OpError
	if err := wait(t, q, &c); !errors.As(err, &op) || op.Index != 0 || !errors.Is(err, f.launchErr) {
		t.Errorf("error %v, want one of operation 0", err)
	}
	f.launchErr, f.launched = nil, nil
	c.Ops()[1].(*gpu.RMSNorm).Dim = 1 << 20
	var bad *gpu.OpError
	if _, err := q.Submit(&c); !errors.As(err, &bad) || bad.Op != "rmsnorm" || len(f.launched) != 0 {
		t.Errorf("error %v and %d launches, want an *gpu.OpError of rmsnorm and none", err, len(f.launched))
	}
}

// TestEncodings wants every kind of operation to have its encoder.
func TestEncodings(t *testing.T) {
	for k, e := range encodings {
		if e.alone == nil {
			t.Errorf("operations of kind %d have no encoder", k)
		}
	}
}

func TestHull(t *testing.T) {
	for _, c := range []struct {
		all  []extent
		want extent
	}{
		{nil, extent{}},
		{[]extent{{}, {}}, extent{}},
		{[]extent{{}, {10, 20}}, extent{10, 20}},
		{[]extent{{30, 40}, {}, {10, 20}}, extent{10, 40}},
		{[]extent{{10, 50}, {20, 30}}, extent{10, 50}},
	} {
		if got := hull(c.all); got != c.want {
			t.Errorf("around %v lies %v, want %v", c.all, got, c.want)
		}
	}
}
