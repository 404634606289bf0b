package gputest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// blockPower returns the power of two that makes the largest weights of a format 2 to 4 if the fp16
// numbers of blocks are that. (Where the bytes around them are random, codes and scales of groups
// are.)
func blockPower(b *quant.Block) int {
	if b.Len == 1 || b.Power {
		return 0
	}
	rng := rand.New(rand.NewPCG(1, 2))
	src, w := make([]byte, b.Size), make([]float32, b.Len)
	largest := 0.0
	for range 16 {
		for i := range src {
			src[i] = byte(rng.Uint32())
		}
		for _, half := range b.Halves {
			binary.LittleEndian.PutUint16(src[half:], 0x3c00) // 1
		}
		b.Unpack(w, src)
		for _, v := range w {
			largest = max(largest, math.Abs(float64(v)))
		}
	}
	return 1 - math.Ilogb(largest)
}

// blockFormats are those whose numbers are in blocks.
func blockFormats() (all []quant.Format) {
	for _, b := range quant.Blocks() {
		if f := quant.InBlock(b); f.Block() != nil {
			all = append(all, f)
		}
	}
	return all
}

// blockNamed returns the format of matrices in blocks of a name.
func blockNamed(name string) quant.Format { return quant.InBlock(quant.BlockNamed(name)) }

// kindsOfBlocks are formats of each kind that kernels for rounded inputs tell apart: groups of 16
// and of 32, with and without biases.
func kindsOfBlocks() []quant.Format {
	return []quant.Format{blockNamed("Q6_K"), blockNamed("Q2_K"), blockNamed("Q8_0"), blockNamed("Q4_K")}
}

// blocks makes random blocks, with scales of both signs and 0. What they mean is package quant's:
// its tests compare it with numbers that another program computed.
func (s *setup) blocks(name string, w *weights) {
	b := w.Format.Block()
	data := make([]byte, b.Bytes(w.Rows, w.Cols))
	for i := range data {
		data[i] = byte(s.rng.Uint32())
	}
	power := blockPower(b)
	for at := 0; at < len(data); at += b.Size {
		for _, half := range b.Halves {
			h := uint16(15+power)<<10 | uint16(s.rng.Uint32()&0x83ff) // 2^power to 2^(power+1), and a sign
			if s.rng.IntN(16) == 0 {
				h = uint16(s.rng.Uint32() & 0x801f) // not normal, or 0
			}
			binary.LittleEndian.PutUint16(data[at+half:], h)
		}
		if b.Power {
			data[at] = byte(122 + s.rng.IntN(4))
		}
	}
	w.fill = func() { w.unblock(b, data) }
	w.Weight = s.place(name, data, w.Format.WordBytes()).view()
}

// unblock sets every element from blocks, without rounding.
func (w *weights) unblock(b *quant.Block, data []byte) {
	if b.Len == 1 {
		one := make([]float32, len(w.values))
		b.Unpack(one, data)
		for i, v := range one {
			w.set(i, float64(v), 0)
		}
		return
	}
	groups := len(w.values) / b.Group
	codes, scales, biases := make([]int8, len(w.values)), make([]float32, groups), make([]float32, groups)
	b.Split(codes, scales, biases, data)
	for i, c := range codes {
		w.set(i, float64(c)*float64(scales[i/b.Group]), float64(biases[i/b.Group]))
	}
}

// storedBlockCases are about matrices in blocks. Other cases have inputs that are not whole blocks.
func storedBlockCases() []testCase {
	var all []testCase
	for _, f := range blockFormats() {
		for _, tokens := range [][]int32{{6}, {0, 6, 3, 3, 1}} {
			all = append(all, testCase{fmt.Sprintf("embed/format=%v/rows=%d", f, len(tokens)), func(s *setup) { embed(s, f, 512, tokens) }})
		}
	}
	for _, f := range kindsOfBlocks() {
		all = append(all, testCase{fmt.Sprintf("matmul/edges/format=%v", f), func(s *setup) { edges(s, f, 3) }})
	}
	return append(all, storedBlockProducts()...)
}

// storedBlockProducts are those that round inputs where a device does.
func storedBlockProducts() []testCase {
	var all []testCase
	add := func(m matmulShape, suffix string) {
		all = append(all, testCase{"matmul/" + shapeName(m.format, m.out, m.in, m.rows) + suffix, func(s *setup) { matmul(s, m) }})
	}
	for _, f := range blockFormats() {
		add(matmulShape{format: f, out: 37, in: 768, rows: 1}, "")
		add(matmulShape{format: f, out: 13, in: 512, rows: 7}, "")
	}
	for _, f := range kindsOfBlocks() {
		for _, rows := range []int{2, 3, 4, 33} {
			add(matmulShape{format: f, out: 9, in: 256, rows: rows}, "")
		}
		add(matmulShape{format: f, out: 259, in: 256, rows: 1}, "")
		add(matmulShape{format: f, out: 5, in: 2304, rows: 600}, "")
		add(matmulShape{format: f, out: 9, in: 256, rows: 3, xStride: 259, yStride: 10}, "/strided")
		add(matmulShape{format: f, out: 9, in: 256, rows: 3, exact: true}, "/exact")
	}
	add(matmulShape{format: blockNamed("Q8_0"), out: 7, in: 96, rows: 3}, "")
	add(matmulShape{format: blockNamed("F16"), out: 7, in: 35, rows: 3}, "")
	q4, q6, q8, f32 := blockNamed("Q4_K"), blockNamed("Q6_K"), blockNamed("Q8_0"), quant.Format{}
	for _, e := range []expertShape{
		{dim: 256, inner: 256, rows: 9, topK: 3, experts: 7, gate: q4, up: q4, down: q6},
		{dim: 512, inner: 64, rows: 70, topK: 2, experts: 3, gate: q4, up: q6, down: q8},
		{dim: 256, inner: 256, rows: 1, topK: 4, experts: 4, gate: q6, up: q6, down: q4, biased: true, clamp: gpu.Clamp{Limit: 0.75, Alpha: 1.702}},
		{dim: 256, inner: 32, rows: 5, topK: 2, experts: 3, missing: 1, gate: f32, up: f32, down: q8},
	} {
		all = append(all, testCase{fmt.Sprintf("experts/dim=%d/inner=%d/rows=%d/%v,%v,%v", e.dim, e.inner, e.rows, e.gate, e.up, e.down),
			func(s *setup) { experts(s, e) }})
		r := e
		r.resident = true
		all = append(all, testCase{fmt.Sprintf("experts/dim=%d/inner=%d/rows=%d/%v,%v,%v/resident", e.dim, e.inner, e.rows, e.gate, e.up, e.down),
			func(s *setup) { experts(s, r) }})
	}
	return all
}

// roundedBlocks are about the rounding of inputs of blocks.
func roundedBlocks(rounds Rounds) (all []testCase) {
	for _, f := range kindsOfBlocks() {
		if !rounds(f) {
			continue
		}
		all = append(all, testCase{fmt.Sprintf("rounded/near/format=%v", f), func(s *setup) { roundedNear(s, f) }},
			testCase{fmt.Sprintf("rounded/not-finite/format=%v", f), func(s *setup) { roundedNotFinite(s, f) }})
	}
	return all
}

// aloneBlocks are operations on blocks that give a row the same bits in any company.
func aloneBlocks() (list []aloneCase) {
	for _, f := range kindsOfBlocks() {
		list = append(list, aloneCase{fmt.Sprintf("matmul/format=%v", f), func(s *setup, rows []int) *operand { return aloneMatMul(s, rows, f, 11, 768) }})
	}
	return list
}
