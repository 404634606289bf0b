package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// deltaRule are the registers of the scan over rows of the gated delta rule.
type deltaRule struct {
	keys, gates, v, y reg.Register
	width             reg.Register // bytes of a row of state
	deltas            Mem          // of the row before: [2, rows of a half]
	labels            int
}

// delta takes lanes rows of state through all rows of input, in two halves: while one half's sums
// are added up the other half's products keep the multipliers busy. A pass brings a half's state up
// to date with the row of input before and takes its products with the row's key and query, so that
// each is read and written once a row.
func (g *vectorGenerator) delta() {
	g.text("delta", "func(state, keys, gates, v, y []float32, vStride, yStride int)",
		fmt.Sprintf("takes %d rows of state through len(gates)/4 rows of [key, query] and [decay, β, key·query, unused].", g.lanes))
	half := g.lanes / 2
	d := &deltaRule{keys: base("keys"), gates: base("gates"), v: base("v"), y: base("y"), width: GP64()}
	d.deltas = AllocLocal(4 * g.lanes)
	MOVQ(address(Param("state").Len()), d.width)
	SHRQ(U8(uint8(map[int]int{16: 4, 8: 3}[g.lanes])), d.width)
	SHLQ(U8(2), d.width)
	count, left := length("gates"), AllocLocal(8)
	SHRQ(U8(2), count)
	MOVQ(count, left)
	for h := range 2 {
		g.deltaPass(d, h*half, false, true)
	}
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
	for h := range 2 {
		g.deltaPass(d, h*half, true, true)
	}
	JMP(LabelRef("rows"))
	Label("last")
	LEAQ(Mem{Base: d.keys, Index: d.width, Scale: 2}, d.keys)
	ADDQ(U8(16), d.gates)
	for h := range 2 {
		g.deltaPass(d, h*half, true, false)
	}
	leave()
}

// deltaPass goes over half the rows, from row first on.
func (g *vectorGenerator) deltaPass(d *deltaRule, first int, update, dots bool) {
	half := g.lanes / 2
	d.labels++
	p := GP64()
	MOVQ(d.width, p)
	IMUL3Q(U32(uint32(first)), p, p)
	ADDQ(address(Param("state").Base()), p)
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
		for r := range half {
			m := d.deltas
			m.Disp += 4 * (first + r)
			deltas = append(deltas, g.broadcast(m))
		}
	}
	sums := make([]reg.VecVirtual, 0, g.lanes) // products with the key, then with the query
	if dots {
		for range g.lanes {
			sums = append(sums, g.zeros())
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
		if g.lanes == 16 {
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
		ADDQ(U32(uint32(4*g.lanes)), m)
	}
	SUBQ(U32(uint32(4*g.lanes)), count)
	JNZ(LabelRef(label))
	if dots {
		g.deltaRow(d, first, g.addUp(sums))
	}
}

// deltaRow makes the outputs of a half and what its state takes over, from S·k in the lower half of
// sums and S·q in the upper.
func (g *vectorGenerator) deltaRow(d *deltaRule, first int, sums reg.VecVirtual) {
	newVec, a := YMM, sums.AsY()
	if g.lanes == 8 {
		newVec, a = XMM, sums.AsX()
	}
	c := newVec()
	if g.lanes == 16 {
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
	VMOVUPS(at(d.v, 4*first), delta)
	VFNMADD231PS(a, decay, delta)
	VMULPS(gate(1), delta, delta)
	place := d.deltas
	place.Disp += 4 * first
	VMOVUPS(delta, place)
	VMULPS(decay, c, c)
	VFMADD231PS(gate(2), delta, c)
	VMOVUPS(c, at(d.y, 4*first))
}

// addUp adds the lanes of as many vectors as there are lanes: lane i of the result is the sum of
// vector i's.
func (g *vectorGenerator) addUp(v []reg.VecVirtual) reg.VecVirtual {
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
	if g.lanes == 8 {
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
