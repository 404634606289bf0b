package gputest

import (
	"fmt"
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

func transferCases() []testCase {
	var all []testCase
	for _, n := range []int{1, 3, 64, 4097, 1 << 20} {
		all = append(all,
			testCase{fmt.Sprintf("transfer/bytes=%d", n), func(s *setup) { transfer(s, n) }},
			testCase{fmt.Sprintf("fetch/bytes=%d", n), func(s *setup) { fetch(s, n) }})
	}
	return all
}

// transfer fills and overwrites pieces of an operand from places that are not aligned.
func transfer(s *setup, n int) {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(s.rng.Uint32())
	}
	o := s.place("Dst", make([]byte, n+2), 1)
	want := append(append([]byte{0}, data...), 0)
	for i := 1; i < 1+n/3; i++ {
		want[i] = 0
	}
	got := make([]byte, n+2)
	gpu.Encode(&s.cmds, gpu.Upload{Dst: o.view().At(1), Src: data})
	gpu.Encode(&s.cmds, gpu.Fill{Dst: o.view().At(1), Bytes: max(1, n/3)})
	gpu.Encode(&s.cmds, gpu.Download{Src: o.view(), Dst: got})
	if n < 3 {
		want[1] = 0
	}
	o.written = func(int) bool { return true }
	s.run()
	if string(got) != string(want) {
		s.t.Errorf("upload, fill and download of %d bytes: got % x…, want % x…", n, got[:min(8, n)], want[:min(8, n)])
	}
}

// fetch has copies in both lanes come after a fill, again after what they replaced was read, and
// before a fill that comes after them.
func fetch(s *setup, n int) {
	var data [3][]byte
	for i := range data {
		data[i] = s.pinned(n)
		for k := range data[i] {
			data[i][k] = byte(s.rng.Uint32())
		}
	}
	var to [2]*operand
	var got [3][]byte
	for i := range got {
		got[i] = make([]byte, n+2)
	}
	for i := range to {
		to[i] = s.place(fmt.Sprint("Dst ", i), make([]byte, n+2), 1)
		to[i].written = func(int) bool { return true }
		gpu.Encode(&s.cmds, gpu.Fill{Dst: to[i].view(), Bytes: n + 2})
	}
	in := func(lane, i int) {
		half := n / 2
		list := []gpu.HostCopy{{Dst: to[lane].view().At(1 + half), Src: data[i][half:]}}
		if half > 0 {
			list = append(list, gpu.HostCopy{Dst: to[lane].view().At(1), Src: data[i][:half]})
		}
		gpu.Encode(&s.cmds, gpu.Fetch{Lane: lane, Copies: list})
	}
	in(0, 0)
	in(1, 1)
	gpu.Encode(&s.cmds, gpu.Fetched{Lane: 0})
	gpu.Encode(&s.cmds, gpu.Download{Src: to[0].view(), Dst: got[0]})
	in(0, 2)
	gpu.Encode(&s.cmds, gpu.Fetched{Lane: 1})
	gpu.Encode(&s.cmds, gpu.Download{Src: to[1].view(), Dst: got[1]})
	gpu.Encode(&s.cmds, gpu.Fetched{Lane: 0})
	gpu.Encode(&s.cmds, gpu.Fill{Dst: to[0].view(), Bytes: 2})
	gpu.Encode(&s.cmds, gpu.Download{Src: to[0].view(), Dst: got[2]})
	s.run()
	for i := range got {
		want := append(append([]byte{0}, data[i]...), 0)
		if i == 2 {
			want[1] = 0
		}
		if string(got[i]) != string(want) {
			s.t.Errorf("fetch %d of %d bytes: got % x…, want % x…",
				i, n, got[i][:min(8, n)], want[:min(8, n)])
		}
	}
}

func rowCases() []testCase {
	var all []testCase
	for _, f := range formats() {
		for _, tokens := range [][]int32{{6}, {0, 6, 3, 3, 1}} {
			name := fmt.Sprintf("embed/format=%v/rows=%d", f, len(tokens))
			all = append(all, testCase{name, func(s *setup) { embed(s, f, 384, tokens) }})
		}
	}
	all = append(all, testCase{"embed/odd", func(s *setup) { embed(s, quant.BF16, 13, []int32{2, 6}) }})
	for _, rows := range [][]int32{{4}, {4, 0, 0, 2, 1, 3, 4}} {
		all = append(all, testCase{fmt.Sprintf("gather/rows=%d", len(rows)), func(s *setup) { gather(s, 5, 37, rows) }})
	}
	for _, dim := range []int{1, 3, 7, 64, 128, 257, 2048, 7168} {
		for _, vectors := range []int{1, 3, 33} {
			if dim*vectors > 1<<16 {
				continue
			}
			name := fmt.Sprintf("rmsnorm/dim=%d/vectors=%d", dim, vectors)
			all = append(all,
				testCase{name, func(s *setup) { norm(s, normShape{vectors: vectors, dim: dim}) }},
				testCase{name + "/strided", func(s *setup) {
					norm(s, normShape{vectors: vectors, dim: dim, xStride: dim + 3, yStride: 2*dim + 1})
				}},
				testCase{name + "/inplace", func(s *setup) {
					norm(s, normShape{vectors: vectors, dim: dim, xStride: dim + 5, yStride: dim + 5, inPlace: true, bare: true})
				}},
				testCase{fmt.Sprintf("gatednorm/dim=%d/vectors=%d", dim, vectors), func(s *setup) { gatedNorm(s, vectors, dim, false) }},
				testCase{fmt.Sprintf("gatednorm/dim=%d/vectors=%d/inplace", dim, vectors), func(s *setup) { gatedNorm(s, vectors, dim, true) }})
		}
	}
	return all
}

// embed: Y[r, :] = Table[Tokens[r], :], dequantised.
func embed(s *setup, f quant.Format, cols int, tokens []int32) {
	table := s.matrix("Table", 7, cols, f)
	y := s.output("Y", len(tokens)*cols)
	var want, limit []float64
	values, magnitudes := table.known()
	for _, t := range tokens {
		for i := range cols {
			at := int(t)*cols + i
			want = append(want, values[at])
			limit = append(limit, dequantTolerance*magnitudes[at]+tiny)
		}
	}
	y.expect(want, limit)
	gpu.Encode(&s.cmds, gpu.Embed{Table: table.Matrix, Tokens: tokens, Y: y.view()})
	s.run()
}

// gather: Y[i, :] = X[Rows[i], :].
func gather(s *setup, xRows, dim int, rows []int32) {
	data := s.normal(xRows * dim)
	x, y := s.input("X", data), s.output("Y", len(rows)*dim)
	var want []float32
	for _, r := range rows {
		want = append(want, data[int(r)*dim:(int(r)+1)*dim]...)
	}
	y.expectExactly(want)
	gpu.Encode(&s.cmds, gpu.Gather{X: x.view(), XRows: xRows, Rows: rows, Y: y.view(), Dim: dim})
	s.run()
}

type normShape struct {
	vectors, dim, xStride, yStride int
	inPlace, bare                  bool // bare: without W
}

const eps = 1e-6

// norm: y = w ⊙ x·(1/sqrt(mean(x²)+Eps)).
func norm(s *setup, n normShape) {
	xs, ys := n.xStride, n.yStride
	if xs == 0 {
		xs, ys = n.dim, n.dim
	}
	data, w := s.normal((n.vectors-1)*xs+n.dim), s.normal(n.dim)
	if n.vectors > 2 {
		clear(data[xs : xs+n.dim]) // one vector of zeros
		for i := range n.dim {
			data[2*xs+i] *= 1e-4 // and one that eps dominates
		}
	}
	want, limit := make([]float64, (n.vectors-1)*ys+n.dim), make([]float64, (n.vectors-1)*ys+n.dim)
	for v := range n.vectors {
		x := float64s(data[v*xs : v*xs+n.dim])
		r := 1 / math.Sqrt(meanSquare(x)+eps)
		for i := range x {
			y := x[i] * r
			if !n.bare {
				y *= float64(w[i])
			}
			want[v*ys+i], limit[v*ys+i] = y, normTolerance(n.dim)*math.Abs(y)+tiny
		}
	}
	op := gpu.RMSNorm{Vectors: n.vectors, Dim: n.dim, XStride: n.xStride, YStride: n.yStride, Eps: eps}
	var y *operand
	if n.inPlace {
		y = s.inout("X and Y", data)
		op.X = y.view()
	} else {
		y = s.output("Y", len(want))
		op.X = s.input("X", data).view()
	}
	y.where(func(i int) bool { return i%ys < n.dim }).expect(want, limit)
	op.Y = y.view()
	if !n.bare {
		op.W = s.input("W", w).view()
	}
	gpu.Encode(&s.cmds, op)
	s.run()
}

func meanSquare(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	return sum / float64(len(x))
}

// gatedNorm: y = w ⊙ x·(1/sqrt(mean(x²)+Eps)) ⊙ silu(z).
func gatedNorm(s *setup, vectors, dim int, inPlace bool) {
	data, z, w := s.normal(vectors*dim), s.extreme(vectors*dim), s.normal(dim)
	want, limit := make([]float64, vectors*dim), make([]float64, vectors*dim)
	for v := range vectors {
		x := float64s(data[v*dim : (v+1)*dim])
		r := 1 / math.Sqrt(meanSquare(x)+eps)
		for i := range x {
			y := float64(w[i]) * x[i] * r * silu(float64(z[v*dim+i]))
			want[v*dim+i], limit[v*dim+i] = y, (normTolerance(dim)+functionTolerance)*math.Abs(y)+tiny
		}
	}
	op := gpu.GatedNorm{Vectors: vectors, Dim: dim, Eps: eps, W: s.input("W", w).view(), Z: s.input("Z", z).view()}
	var y *operand
	if inPlace {
		y = s.inout("X and Y", data)
		op.X = y.view()
	} else {
		y = s.output("Y", len(want))
		op.X = s.input("X", data).view()
	}
	y.expect(want, limit)
	op.Y = y.view()
	gpu.Encode(&s.cmds, op)
	s.run()
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func silu(x float64) float64 { return x * sigmoid(x) }
