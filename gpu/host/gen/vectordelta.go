package main

import (
	"fmt"
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

// deltaRule holds the registers of the gated delta rule's scan over rows.
type deltaRule struct {
	keys, gates, v, y reg.Register
	width             reg.Register // bytes of a row of state
	deltas            Mem          // of the row before: [rows of both halves]
	// the half under way: its state, and bytes of the numbers before its own
	state, half Mem
	labels      int
}

// delta takes lanes rows of state through all rows of input, in two halves: while one half's sums
// are added up, the other half's products keep the multipliers busy. A pass updates a half's state
// with the previous row of input and multiplies it by the current row's key and query, so that the
// state is read and written once a row.
func (g *generator) delta(base.Func) {
	d := &deltaRule{keys: start("keys"), gates: start("gates"), v: start("v"), y: start("y"), width: GP64()}
	d.deltas, d.state, d.half = AllocLocal(4*g.isa.Lanes), AllocLocal(8), AllocLocal(8)
	MOVQ(address(Param("state").Len()), d.width)
	SHRQ(U8(uint8(map[int]int{16: 4, 8: 3}[g.isa.Lanes])), d.width)
	SHLQ(U8(2), d.width)
	count, left := length("gates"), AllocLocal(8)
	SHRQ(U8(2), count)
	MOVQ(count, left)
	g.deltaPass(d, false, true)
	Label("rows")
	DECQ(left)
	JZ(LabelRef("last"))
	LEAQ(Mem{Base: d.keys, Index: d.width, Scale: 2}, d.keys)
	ADDQ(U8(16), d.gates)
	for _, p := range []struct {
		r      reg.Register
		stride string
	}{{d.v, "vStride"}, {d.y, "yStride"}} {
		s := Load(Param(p.stride), GP64())
		LEAQ(Mem{Base: p.r, Index: s, Scale: 4}, p.r)
	}
	g.deltaPass(d, true, true)
	JMP(LabelRef("rows"))
	Label("last")
	LEAQ(Mem{Base: d.keys, Index: d.width, Scale: 2}, d.keys)
	ADDQ(U8(16), d.gates)
	g.deltaPass(d, true, false)
	end()
}

// deltaPass goes over all rows of state, one half after the other.
func (g *generator) deltaPass(d *deltaRule, update, dots bool) {
	half := g.isa.Lanes / 2
	d.labels++
	MOVQ(start("state"), d.state)
	MOVQ(U32(0), d.half)
	Label(fmt.Sprintf("half%d", d.labels))
	p := GP64()
	MOVQ(d.state, p)
	rows := strided(p, d.width, half)
	key, count := GP64(), GP64()
	MOVQ(d.keys, key)
	MOVQ(d.width, count)
	before := GP64()
	var decay reg.VecVirtual
	var deltas []reg.VecVirtual
	if update {
		MOVQ(d.keys, before)
		SUBQ(d.width, before)
		SUBQ(d.width, before)
		decay = g.broadcast(at(d.gates, -16))
		place := d.delta()
		for r := range half {
			deltas = append(deltas, g.broadcast(at(place, 4*r)))
		}
	}
	sums := make([]reg.VecVirtual, 0, g.isa.Lanes) // products with the key, then with the query
	if dots {
		for range g.isa.Lanes {
			sums = append(sums, g.zero())
		}
	}
	label := fmt.Sprintf("pass%d", d.labels)
	Label(label)
	var k, q, kb Op
	if dots {
		k, q = g.loadVec(at(key, 0), nil), g.loadVec(Mem{Base: key, Index: d.width, Scale: 1}, nil)
	}
	if update {
		kb = at(before, 0)
		if g.isa.Lanes == 16 {
			kb = g.loadVec(at(before, 0), nil)
		}
	}
	for r, m := range rows {
		s := g.vec()
		if update {
			VMULPS(m, decay, s)
			VFMADD231PS(kb, deltas[r], s)
			VMOVUPS(s, m)
		} else {
			VMOVUPS(m, s)
		}
		if dots {
			VFMADD231PS(k, s, sums[r])
			VFMADD231PS(q, s, sums[half+r])
		}
	}
	moving := []reg.Register{p}
	if half > 4 {
		moving = append(moving, rows[4].Base)
	}
	if dots {
		moving = append(moving, key)
	}
	if update {
		moving = append(moving, before)
	}
	for _, m := range moving {
		ADDQ(U32(uint32(4*g.isa.Lanes)), m)
	}
	SUBQ(U32(uint32(4*g.isa.Lanes)), count)
	JNZ(LabelRef(label))
	if dots {
		g.deltaRow(d, g.addUp(sums))
	}
	next := GP64()
	MOVQ(d.width, next)
	SHLQ(U8(bits.TrailingZeros(uint(half))), next)
	ADDQ(next, d.state)
	ADDQ(U8(4*half), d.half)
	CMPQ(d.half, U8(8*half))
	JB(LabelRef(fmt.Sprintf("half%d", d.labels)))
}

// delta returns where the current half keeps its δ.
func (d *deltaRule) delta() reg.Register {
	place := GP64()
	LEAQ(d.deltas, place)
	ADDQ(d.half, place)
	return place
}

// deltaRow computes the outputs of a half and its δ from S·k, the lower half of sums, and S·q, the
// upper.
func (g *generator) deltaRow(d *deltaRule, sums reg.VecVirtual) {
	newVec, a := YMM, sums.AsY()
	if g.isa.Lanes == 8 {
		newVec, a = XMM, sums.AsX()
	}
	c := newVec()
	if g.isa.Lanes == 16 {
		VEXTRACTF64X4(U8(1), sums, c)
	} else {
		VEXTRACTF128(U8(1), sums, c)
	}
	gate := func(i int) reg.VecVirtual {
		v := newVec()
		VBROADCASTSS(at(d.gates, 4*i), v)
		return v
	}
	decay, delta := gate(0), newVec()
	first := GP64()
	MOVQ(d.half, first)
	VMOVUPS(Mem{Base: d.v, Index: first, Scale: 1}, delta)
	VFNMADD231PS(a, decay, delta)
	VMULPS(gate(1), delta, delta)
	VMOVUPS(delta, at(d.delta(), 0))
	VMULPS(decay, c, c)
	VFMADD231PS(gate(2), delta, c)
	VMOVUPS(c, Mem{Base: d.y, Index: first, Scale: 1})
}

// addUp adds up the lanes of as many vectors as there are lanes: lane i of the result is the sum of
// vector i.
func (g *generator) addUp(v []reg.VecVirtual) reg.VecVirtual {
	pairs := func(v []reg.VecVirtual, low, high func(a, b, to reg.VecVirtual)) []reg.VecVirtual {
		var out []reg.VecVirtual
		for i := 0; i < len(v); i += 2 {
			t := g.vec()
			low(v[i+1], v[i], t)
			high(v[i+1], v[i], v[i])
			VADDPS(v[i], t, t)
			out = append(out, t)
		}
		return out
	}
	v = pairs(v, func(a, b, to reg.VecVirtual) { VUNPCKLPS(a, b, to) }, func(a, b, to reg.VecVirtual) { VUNPCKHPS(a, b, to) })
	v = pairs(v, func(a, b, to reg.VecVirtual) { VUNPCKLPD(a, b, to) }, func(a, b, to reg.VecVirtual) { VUNPCKHPD(a, b, to) })
	if g.isa.Lanes == 8 {
		v = pairs(v, func(a, b, to reg.VecVirtual) { VPERM2F128(U8(0x20), a, b, to) }, func(a, b, to reg.VecVirtual) { VPERM2F128(U8(0x31), a, b, to) })
		return v[0]
	}
	blocks := func(low, high uint8) {
		v = pairs(v, func(a, b, to reg.VecVirtual) { VSHUFF32X4(U8(low), a, b, to) }, func(a, b, to reg.VecVirtual) { VSHUFF32X4(U8(high), a, b, to) })
	}
	blocks(0x44, 0xee)
	blocks(0x88, 0xdd)
	return v[0]
}
