package host

import (
	"encoding/binary"
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

func portableNorm(y, x, w []float32, r float32) {
	if len(w) == 0 {
		for i := range y {
			y[i] = x[i] * r
		}
		return
	}
	for i := range y {
		y[i] = w[i] * (x[i] * r)
	}
}

func portableGatedNorm(y, x, w, z []float32, r float32) {
	for i := range y {
		y[i] = w[i] * (x[i] * r) * silu(z[i])
	}
}

func portableAdd(y, a, b []float32) {
	for i := range y {
		y[i] = a[i] + b[i]
	}
}

func portableMerge(y, x []float32, f, h float32) {
	for i := range y {
		y[i] = float32(f*y[i]) + float32(h*x[i])
	}
}

// swiglu writes silu(gate)·up to y, which may be either.
func swiglu(y, gate, up []float32) {
	for i := range y {
		y[i] = silu(gate[i]) * up[i]
	}
}

func portableGate(x, gate []float32) {
	for i := range x {
		x[i] *= sigmoid(gate[i])
	}
}

func portableCombine(y, residual, routed, weights, shared []float32, scale float32) {
	n := len(y)
	for i := range y {
		var acc float32
		for k, w := range weights {
			acc += float32(w * routed[k*n+i])
		}
		if shared != nil {
			acc += float32(scale * shared[i])
		}
		y[i] = residual[i] + acc
	}
}

func portableConv(y, w, x0, x1, x2, x3 []float32) {
	n := len(y)
	for i := range y {
		acc := float32(w[i] * x0[i])
		acc += float32(w[n+i] * x1[i])
		acc += float32(w[2*n+i] * x2[i])
		acc += float32(w[3*n+i] * x3[i])
		y[i] = silu(acc)
	}
}

// rotateHeads rotates the first len(table) channels of each head; heads lie stride floats apart.
func rotateHeads(x, table []float32, heads, stride int, pairs bool) {
	for h := range heads {
		a := x[h*stride:][:len(table)]
		if pairs {
			rotate(a, a[1:], 2, table)
		} else {
			rotate(a, a[len(table)/2:], 1, table)
		}
	}
}

// rotate turns the pairs (a[i·step], b[i·step]) by the angles whose cosines and sines are in table.
func rotate(a, b []float32, step int, table []float32) {
	for i := 0; 2*i < len(table); i++ {
		cos, sin := table[2*i], table[2*i+1]
		u, v := a[i*step], b[i*step]
		a[i*step] = float32(u*cos) - float32(v*sin)
		b[i*step] = float32(u*sin) + float32(v*cos)
	}
}

func portableWiden(dst []float32, row []byte) {
	for i := range dst {
		dst[i] = bf16(row, i)
	}
}

// portableWiden8 writes code·scale, an exact product, to rows of dst [rows, width]. Rows of codes
// lie codeStride apart. The scales of a group lie side by side, one for each row; groups lie
// scaleStride apart. At least 16 bytes after the last code may be read.
func portableWiden8(dst []float32, codes []byte, scales []float32, group, width, codeStride, scaleStride int) {
	for r := range len(dst) / width {
		for g := range width / group {
			at := g * group
			gpu.KVWiden(dst[r*width+at:], codes[r*codeStride+at:][:group], scales[g*scaleStride+r])
		}
	}
}

// portableTranspose8 writes code·scale to dst[c, r], rows as columns dstStride apart. Codes and
// scales are laid out as for portableWiden8. rows is a multiple of lanes, group of codeColumns.
func portableTranspose8(dst []float32, codes []byte, scales []float32, group, width, dstStride, codeStride, scaleStride, rows int) {
	for r := range rows {
		for c, q := range codes[r*codeStride:][:width] {
			dst[c*dstStride+r] = float32(int8(q)) * scales[c/group*scaleStride+r]
		}
	}
}

func portableTranspose(dst, src []float32, dstStride, srcStride, rows, columns int) {
	for r := range rows {
		for c, v := range src[r*srcStride:][:columns] {
			dst[c*dstStride+r] = v
		}
	}
}

// portableSoftmax adds a block of scores [rows, attnBlock] to each row's sums: stats holds the
// largest score and the sum of the weights, acc [rows, dim] the weighted values. Scores become
// weights e^(score-max). Where max grows, sum and acc are scaled. Scores of -Inf weigh nothing. In
// the beginning max is lowestScore, and sum and acc are zero.
func portableSoftmax(scores, stats, acc []float32, dim int) {
	for r := range len(stats) / 2 {
		s, a := scores[r*attnBlock:(r+1)*attnBlock], acc[r*dim:(r+1)*dim]
		top := stats[2*r]
		for _, v := range s {
			top = max(top, v)
		}
		if before := stats[2*r]; top != before {
			f := float32(math.Exp(float64(before) - float64(top)))
			stats[2*r], stats[2*r+1] = top, stats[2*r+1]*f
			for d := range a {
				a[d] *= f
			}
		}
		var sum float32
		for j, v := range s {
			s[j] = float32(math.Exp(float64(v - top)))
			sum += s[j]
		}
		stats[2*r+1] += sum
	}
}

// portableMultiply adds four products at a time.
func portableMultiply(c, a, b []float32, cs, as, bs, rows, depth, cols int, sum bool) {
	for r := range rows {
		y, x := c[r*cs:][:cols], a[r*as:][:depth]
		if !sum {
			clear(y)
		}
		k := 0
		for ; k+4 <= depth; k += 4 {
			a0, a1, a2, a3 := x[k], x[k+1], x[k+2], x[k+3]
			b0, b1, b2, b3 := b[k*bs:][:cols], b[(k+1)*bs:][:cols], b[(k+2)*bs:][:cols], b[(k+3)*bs:][:cols]
			for j := range y {
				t := y[j] + float32(a0*b0[j])
				t += float32(a1 * b1[j])
				t += float32(a2 * b2[j])
				t += float32(a3 * b3[j])
				y[j] = t
			}
		}
		for ; k < depth; k++ {
			addTimes(y, b[k*bs:], x[k])
		}
	}
}

// portableDelta takes rows of state [channels, n] through rows of keys and queries [rows, 2, n] and
// of gates [rows, 4]: decay g, β, k·q, and one unused. With a = S·k and c = S·q of the old state S
// it computes δ = β·(v - g·a), y = g·c + δ·(k·q) and S ← g·S + δ·kᵀ. Dot products are summed in
// four lanes.
func portableDelta(state, keys, gates, v, y []float32, vStride, yStride int) {
	rows := len(gates) / 4
	n := len(keys) / rows / 2
	for i := range len(state) / n {
		s := state[i*n:][:n]
		for t := range rows {
			k, q := keys[2*t*n:][:n], keys[(2*t+1)*n:][:n]
			g, beta, kq := gates[4*t], gates[4*t+1], gates[4*t+2]
			a, c := dotTwo(s, k, q)
			delta := beta * (v[t*vStride+i] - float32(g*a))
			y[t*yStride+i] = float32(g*c) + float32(delta*kq)
			for j, e := range k {
				s[j] = float32(g*s[j]) + float32(delta*e)
			}
		}
	}
}

// portableDequantise is codingKernels.dequantise.
func portableDequantise(c quant.Coding) func(dst []float32, words, scales, biases []byte, shifts []uint32, group, wordStride, groupStride int) {
	return func(dst []float32, words, scales, biases []byte, shifts []uint32, group, wordStride, groupStride int) {
		perWord, mask := 32/c.Bits(), uint32(1<<c.Bits()-1)
		for g := range len(dst) / group {
			scale, bias := c.Scale(scales[g*groupStride:], 0), c.Bias(biases[min(g*groupStride, len(biases)):], 0)
			part := dst[g*group : (g+1)*group]
			for i := 0; i < group; i += perWord {
				word := binary.LittleEndian.Uint32(words[(g*group+i)/perWord*wordStride:])
				for j, s := range shifts[:perWord] {
					part[i+j] = float32(c.Value(int(word>>s&mask))*scale) + bias
				}
			}
		}
	}
}
