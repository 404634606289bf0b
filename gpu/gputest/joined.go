package gputest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
)

// sequence is operations that follow one another, on memory whose places a test chooses. A device
// may compute several at once: the bits must be those of one after the other, whatever memory they
// share.
type sequence struct {
	name string
	// sizes are the operands' numbers of float32.
	sizes []int
	// racing are pairs of operands of one operation that must not overlap without Check knowing it:
	// matrices and caches that it writes.
	racing [][2]int
	// one are pairs that one operation may be given as one memory only where the device reads the
	// same by two names.
	one [][2]int
	// build returns the operations, given where an operand is.
	build func(at func(operand int) gpu.View) []func(c *gpu.Commands)
}

func sequences() []sequence {
	return []sequence{productSequence(1), productSequence(3), gatedSequence(), addNormSequence(), combineNormSequence(), headSequence(0), headSequence(8), latentSequence()}
}

// testJoined runs each sequence in one Submit and in one for each operation, for each pair of
// operands apart, the same and overlapping by more or less, and wants the same bits in all memory.
func testJoined(t *testing.T, d gpu.Device) {
	for _, q := range sequences() {
		t.Run(q.name, func(t *testing.T) {
			p := newPool(t, d, &q)
			p.compare(0, 0, 0)
			for moved := range q.sizes {
				for to := range q.sizes {
					for _, shift := range []int{0, 1, 4, q.sizes[to] / 2 &^ 3, q.sizes[to] - 1} {
						p.compare(moved, to, shift)
					}
				}
			}
			if p.runs < len(q.sizes) {
				t.Errorf("only %d ways to share memory were run", p.runs)
			}
		})
	}
}

// fits reports whether a pool's operands can be where they are: of each operation alone.
func (p *pool) fits() bool {
	for _, r := range p.q.racing {
		a, b := p.at[r[0]], p.at[r[1]]
		if a < b+4*p.q.sizes[r[1]] && b < a+4*p.q.sizes[r[0]] {
			return false
		}
	}
	for _, r := range p.q.one {
		if p.at[r[0]] == p.at[r[1]] {
			return false
		}
	}
	return true
}

// pool is the memory of a sequence's operands.
type pool struct {
	t      *testing.T
	d      gpu.Device
	q      *sequence
	buf    gpu.Buffer
	at     []int // of each operand, bytes
	before []byte
	runs   int
}

func newPool(t *testing.T, d gpu.Device, q *sequence) *pool {
	p, total, most := &pool{t: t, d: d, q: q}, 0, 0
	for _, n := range q.sizes {
		p.at = append(p.at, 4*total)
		total += (n + 8) &^ 3
		most = max(most, n)
	}
	total += 2 * most // room for what is moved to the last one's end
	p.before = append(p.before, gpu.FloatBytes(newSetup(t, d, q.name).normal(total))...)
	buf, err := d.NewBuffer(4 * total)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(buf.Release)
	p.buf = buf
	return p
}

// compare moves an operand to shift float32 past another one's beginning and compares. What Check
// refuses is left out.
func (p *pool) compare(moved, to, shift int) {
	p.t.Helper()
	was := p.at[moved]
	defer func() { p.at[moved] = was }()
	p.at[moved] = p.at[to] + 4*shift
	if !p.fits() {
		return
	}
	ops := p.q.build(func(operand int) gpu.View { return gpu.View{Buf: p.buf, Offset: p.at[operand]} })
	together, singly := []*gpu.Commands{{}}, []*gpu.Commands(nil)
	for _, encode := range ops {
		encode(together[0])
		c := new(gpu.Commands)
		encode(c)
		singly = append(singly, c)
	}
	if together[0].Check() != nil {
		return
	}
	p.runs++
	got, want := p.run(together), p.run(singly)
	if !bytes.Equal(got, want) {
		p.t.Errorf("operand %d at float %d of operand %d: in one Submit the memory has other bits than one operation after the other: %s",
			moved, shift, to, p.difference(got, want))
	}
}

// run runs commands on fresh contents and returns what the memory has then.
func (p *pool) run(all []*gpu.Commands) []byte {
	p.t.Helper()
	after := make([]byte, len(p.before))
	var up, down gpu.Commands
	gpu.Encode(&up, gpu.Upload{Dst: gpu.View{Buf: p.buf}, Src: p.before})
	gpu.Encode(&down, gpu.Download{Src: gpu.View{Buf: p.buf}, Dst: after})
	submit(p.t, p.d, append(append([]*gpu.Commands{&up}, all...), &down)...)
	return after
}

// difference says where the first difference is.
func (p *pool) difference(got, want []byte) string {
	i := 0
	for got[i] == want[i] {
		i++
	}
	return fmt.Sprintf("byte %d, operands are at %v", i, p.at)
}

func encodeMatMul(op gpu.MatMul) func(c *gpu.Commands) {
	return func(c *gpu.Commands) { gpu.Encode(c, op) }
}

// productSequence is products of the same rows: operand 0 is X, then three matrices, then their
// results.
func productSequence(rows int) sequence {
	const in, n = 64, 3
	outs := [n]int{12, 8, 9}
	q := sequence{name: fmt.Sprintf("products/rows=%d", rows), sizes: []int{rows * in}}
	for _, out := range outs {
		q.sizes = append(q.sizes, out*in)
	}
	for i, out := range outs {
		q.sizes = append(q.sizes, rows*out)
		q.racing = append(q.racing, [2]int{1 + i, 1 + n + i})
	}
	q.build = func(at func(int) gpu.View) (ops []func(c *gpu.Commands)) {
		for i, out := range outs {
			ops = append(ops, encodeMatMul(gpu.MatMul{W: gpu.Matrix{Rows: out, Cols: in, Weight: at(1 + i)}, X: at(0), Y: at(1 + n + i), Rows: rows}))
		}
		return ops
	}
	return q
}

// gatedSequence is a gate's and an up's product and their SwiGLU: X, two matrices, three results.
func gatedSequence() sequence {
	const in, out, rows = 64, 8, 3
	return sequence{name: "products/swiglu", sizes: []int{rows * in, out * in, out * in, rows * out, rows * out, rows * out}, racing: [][2]int{{1, 3}, {2, 4}},
		build: func(at func(int) gpu.View) (ops []func(c *gpu.Commands)) {
			for i := range 2 {
				ops = append(ops, encodeMatMul(gpu.MatMul{W: gpu.Matrix{Rows: out, Cols: in, Weight: at(1 + i)}, X: at(0), Y: at(3 + i), Rows: rows}))
			}
			return append(ops, func(c *gpu.Commands) {
				gpu.Encode(c, gpu.SwiGLU{Gate: at(3), Up: at(4), Y: at(5), Rows: rows, Dim: out})
			})
		}}
}

// addNormSequence is a sum and its norm: A, B, the sum, W, Y.
func addNormSequence() sequence {
	const rows, dim = 2, 1024
	return sequence{name: "add/norm", sizes: []int{rows * dim, rows * dim, rows * dim, dim, rows * dim}, one: [][2]int{{2, 3}},
		build: func(at func(int) gpu.View) []func(c *gpu.Commands) {
			return []func(c *gpu.Commands){
				func(c *gpu.Commands) { gpu.Encode(c, gpu.Add{A: at(0), B: at(1), Y: at(2), N: rows * dim}) },
				func(c *gpu.Commands) {
					gpu.Encode(c, gpu.RMSNorm{X: at(2), W: at(3), Y: at(4), Vectors: rows, Dim: dim, Eps: eps})
				},
			}
		}}
}

// combineNormSequence is the end of an expert layer and its norm: Routed, Shared, SharedGate,
// Residual, the sum, W, Y.
func combineNormSequence() sequence {
	const rows, topK, dim = 2, 3, 132
	weights := make([]float32, rows*topK)
	for i := range weights {
		weights[i] = 1 / float32(i+2)
	}
	return sequence{name: "combine/norm", sizes: []int{rows * topK * dim, rows * dim, rows, rows * dim, rows * dim, dim, rows * dim},
		one: [][2]int{{0, 3}, {1, 3}, {2, 3}, {4, 5}},
		build: func(at func(int) gpu.View) []func(c *gpu.Commands) {
			return []func(c *gpu.Commands){
				func(c *gpu.Commands) {
					gpu.Encode(c, gpu.Combine{Routed: at(0), Shared: at(1), SharedGate: at(2), Residual: at(3), Y: at(4), Weights: gpu.List[float32]{Host: weights}, Rows: rows, TopK: topK, Dim: dim})
				},
				func(c *gpu.Commands) {
					gpu.Encode(c, gpu.RMSNorm{X: at(4), W: at(5), Y: at(6), Vectors: rows, Dim: dim, Eps: eps})
				},
			}
		}}
}

// headSequence is the way of queries, keys and values to attention: Q, K, V, norms of queries and
// keys, the rotary table, a page. group is the cache's.
func headSequence(group int) sequence {
	const rows, heads, kvHeads, dim, rotary, pageRows = 2, 3, 2, 16, 12, 4
	kv := gpu.KV{KVLayout: gpu.KVLayout{PageRows: pageRows, Dim: kvHeads * dim}}
	if group > 0 {
		kv.Format, kv.Group = gpu.KVInt8, group
	}
	kv.VOffset = kv.PartBytes()
	return sequence{
		name:   fmt.Sprintf("heads/group=%d", group),
		sizes:  []int{rows * heads * dim, rows * kvHeads * dim, rows * kvHeads * dim, dim, dim, rows * rotary, 2 * kv.PartBytes() / 4},
		racing: [][2]int{{6, 1}, {6, 2}},
		build: func(at func(int) gpu.View) []func(c *gpu.Commands) {
			kv := kv
			kv.Pages = gpu.PagesOf(at(6))
			return []func(c *gpu.Commands){
				func(c *gpu.Commands) {
					gpu.Encode(c, gpu.RMSNorm{X: at(0), W: at(3), Y: at(0), Vectors: rows * heads, Dim: dim, Eps: eps})
				},
				func(c *gpu.Commands) {
					gpu.Encode(c, gpu.RMSNorm{X: at(1), W: at(4), Y: at(1), Vectors: rows * kvHeads, Dim: dim, Eps: eps})
				},
				func(c *gpu.Commands) {
					gpu.Encode(c, gpu.Rope{X: at(0), Table: at(5), Rows: rows, Heads: heads, Rotary: rotary, RowStride: heads * dim, HeadStride: dim})
				},
				func(c *gpu.Commands) {
					gpu.Encode(c, gpu.Rope{X: at(1), Table: at(5), Rows: rows, Heads: kvHeads, Rotary: rotary, RowStride: kvHeads * dim, HeadStride: dim})
				},
				func(c *gpu.Commands) {
					gpu.Encode(c, gpu.AppendKV{K: at(1), V: at(2), Cache: kv.KVLayout, Segments: []gpu.KVSegment{{Rows: rows, Pos: 1, Pages: kv.Pages}}})
				},
			}
		},
	}
}

// latentSequence is the way of latents to attention: what is kept of a row, queries, the latents'
// norm, the rotary table, a page, folded queries.
func latentSequence() sequence {
	const rows, heads, rank, nope, rotary, pageRows = 2, 3, 20, 8, 8, 4
	const kept, width = rank + rotary, nope + rotary
	return sequence{
		name:   "latents",
		sizes:  []int{rows * kept, rows * heads * width, rank, rows * rotary, pageRows * kept, rows * heads * kept},
		racing: [][2]int{{4, 0}},
		build: func(at func(int) gpu.View) []func(c *gpu.Commands) {
			kv := gpu.KV{KVLayout: gpu.KVLayout{PageRows: pageRows, Dim: kept}, Pages: gpu.PagesOf(at(4))}
			return []func(c *gpu.Commands){
				func(c *gpu.Commands) {
					gpu.Encode(c, gpu.RMSNorm{X: at(0), W: at(2), Y: at(0), Vectors: rows, Dim: rank, XStride: kept, YStride: kept, Eps: eps})
				},
				func(c *gpu.Commands) {
					gpu.Encode(c, gpu.Rope{X: at(0).Floats(rank), Table: at(3), Rows: rows, Heads: 1, Rotary: rotary, RowStride: kept, HeadStride: rotary, Interleaved: true})
				},
				func(c *gpu.Commands) {
					gpu.Encode(c, gpu.Rope{X: at(1).Floats(nope), Table: at(3), Rows: rows, Heads: heads, Rotary: rotary, RowStride: heads * width, HeadStride: width, Interleaved: true})
				},
				func(c *gpu.Commands) {
					gpu.Encode(c, gpu.AppendKV{K: at(0), Cache: kv.KVLayout, Segments: []gpu.KVSegment{{Rows: rows, Pos: 1, Pages: kv.Pages}}})
				},
				func(c *gpu.Commands) {
					gpu.Encode(c, gpu.CopyHeads{X: at(1).Floats(nope), Y: at(5).Floats(rank), Rows: rows, Heads: heads, Dim: rotary,
						XRowStride: heads * width, XHeadStride: width, YRowStride: heads * kept, YHeadStride: kept})
				},
			}
		},
	}
}
