package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

// dotCodes has tiles of 4, 2 and 1 queries by all positions of a block (AVX-512) or 16 of them.
// Products of bytes take keys without a sign, 128 more than they are: a query's group brings what
// its sums begin with. AVX2 multiplies what keys are without their signs by what queries are with
// them; two products of bytes between -127 and 127 fit into 16 bits.
func (g *generator) dotCodes(base.Func) {
	d := &dotCodes{generator: g, vectors: 2, fetches: 1, rows: AllocLocal(8), groups: AllocLocal(8), column: AllocLocal(8)}
	if g.wide() {
		d.vectors, d.fetches = base.SoftmaxPositions/g.isa.Lanes, 2
	}
	if d.bytes() {
		d.flip = g.keep(g.same("codesflip", 0x80808080))
	} else {
		d.flip = g.keep(g.same("codesones", 0x00010001))
	}
	d.lines = &lines{next: GP64(), last: AllocLocal(8), bytes: 4 * g.isa.Lanes}
	place, last := Load(Param("next"), GP64()), GP64()
	MOVQ(at(place, 0), d.lines.next)
	MOVQ(at(place, 8), last)
	MOVQ(last, d.lines.last)
	MOVQ(Load(Param("rows"), GP64()), d.rows)
	d.q, d.scores, d.stride = start("q"), start("scores"), Load(Param("qStride"), GP64())
	for n := 4; n > 0; n /= 2 {
		Label(fmt.Sprintf("rows%d", n))
		CMPQ(d.rows, U32(uint32(n)))
		JB(LabelRef(fmt.Sprintf("below%d", n)))
		d.band(n)
		advance := GP64()
		MOVQ(d.stride, advance)
		IMUL3Q(U32(uint32(n)), advance, advance)
		ADDQ(advance, d.q)
		ADDQ(U32(uint32(4*n*base.SoftmaxPositions)), d.scores)
		SUBQ(U32(uint32(n)), d.rows)
		JMP(LabelRef(fmt.Sprintf("rows%d", n)))
		Label(fmt.Sprintf("below%d", n))
	}
	place = Load(Param("next"), GP64())
	MOVQ(d.lines.next, at(place, 0))
	end()
}

// dotCodes is the function being written.
type dotCodes struct {
	*generator
	vectors int // of positions in a tile
	fetches int // of lines in a step over the depth
	// bytes of 128, or without products of bytes pairs of 1
	flip reg.VecVirtual

	q, scores, stride reg.Register // the tile's rows; stride is that of q
	rows              Mem          // left to do
	groups, column    Mem          // left to do; the tile's first position
	lines             *lines
}

// bytes reports whether there are products of bytes.
func (d *dotCodes) bytes() bool { return d.wide() || d.isa.Dots }

// rowBytes is how far the keys of the next channels, and the scales of the next group, are.
const rowBytes = 4 * base.SoftmaxPositions

// band is n queries and all positions.
func (d *dotCodes) band(n int) {
	name := func(part string) string { return fmt.Sprintf("codes%d_%s", n, part) }
	MOVQ(U32(0), d.column)
	Label(name("columns"))
	q, keys, scales := GP64(), start("words"), start("scales")
	MOVQ(d.q, q)
	number, count := Load(Param("group"), GP64()), Load(Param("groups"), GP64())
	MOVQ(count, d.groups)
	IMULQ(count, number) // a query's codes, which its numbers follow
	ADDQ(q, number)
	y := GP64()
	MOVQ(d.scores, y)
	for _, p := range []reg.Register{keys, scales, y} {
		ADDQ(d.column, p)
	}
	zero := d.zero()
	for r := range n {
		for v := range d.vectors {
			VMOVUPS(zero, d.score(y, r, v))
		}
	}
	Label(name("groups"))
	sums := make([][]reg.VecVirtual, n)
	starts := strided(number, d.stride, n)
	for r := range sums {
		sums[r] = d.vecs(d.vectors)
		for _, sum := range sums[r] {
			if d.bytes() {
				m := starts[r]
				m.Disp = 4
				VPBROADCASTD(m, sum)
			} else {
				d.clear(sum)
			}
		}
	}
	steps := Load(Param("group"), GP64())
	SHRQ(U8(2), steps)
	places := strided(q, d.stride, n)
	loop(name("depth"), steps, func() {
		d.products(keys, places, sums)
		for range d.fetches {
			d.lines.step()
		}
		ADDQ(U8(4), q)
		ADDQ(U32(rowBytes), keys)
	})
	starts = strided(number, d.stride, n)
	for r := range sums {
		s := d.broadcast(starts[r])
		for v, sum := range sums[r] {
			VCVTDQ2PS(sum, sum)
			VMULPS(s, sum, sum)
			VMULPS(at(scales, 4*d.isa.Lanes*v), sum, sum)
			VADDPS(d.score(y, r, v), sum, sum)
			VMOVUPS(sum, d.score(y, r, v))
		}
	}
	ADDQ(U8(8), number)
	ADDQ(U32(rowBytes), scales)
	DECQ(d.groups)
	JNZ(LabelRef(name("groups")))
	ADDQ(U32(uint32(4*d.isa.Lanes*d.vectors)), d.column)
	CMPQ(d.column, U32(rowBytes))
	JB(LabelRef(name("columns")))
}

// score is a vector of a query's scores.
func (d *dotCodes) score(y reg.Register, r, v int) Mem { return at(y, r*rowBytes+4*d.isa.Lanes*v) }

// products adds those of four channels.
func (d *dotCodes) products(keys reg.Register, q []Mem, sums [][]reg.VecVirtual) {
	k, size := d.vecs(d.vectors), d.vecs(d.vectors)
	for v := range k {
		VMOVUPS(at(keys, 4*d.isa.Lanes*v), k[v])
		if d.bytes() {
			d.xor(k[v], d.flip, k[v])
		} else {
			VPABSB(k[v], size[v])
		}
	}
	for r, m := range q {
		x := d.vec()
		VPBROADCASTD(m, x)
		for v, sum := range sums[r] {
			if d.bytes() {
				VPDPBUSD(x, k[v], sum)
				continue
			}
			y := d.vec()
			VPSIGNB(k[v], x, y)
			VPMADDUBSW(y, size[v], y)
			VPMADDWD(d.flip, y, y)
			VPADDD(y, sum, sum)
		}
	}
}
