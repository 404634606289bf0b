package main

import "github.com/moeflux/moeflux-actor/gpu/host/gen/base"

// Registers of delta; strides and widths are in bytes.
const (
	deltaState   gen = 0
	deltaKeys    gen = 1
	deltaGates   gen = 2
	deltaV       gen = 3
	deltaY       gen = 4
	deltaWidth   gen = 5 // of a row of state
	deltaVStride gen = 6
	deltaYStride gen = 7
	deltaLeft    gen = 8 // rows of input
	deltaRow     gen = 9 // to R12: rows of state
	deltaKey     gen = 13
	deltaQuery   gen = 14
	deltaBefore  gen = 15 // key of the row of input before
	deltaCount   gen = 19

	deltaDots    vec = 16 // to V19: with the key
	deltaQueries vec = 20 // to V23: with the query
	deltaAdded   vec = 24 // what the state takes over of the row of input before
	deltaDecay   vec = 25 // its gates
)

// delta takes four rows of state through all rows of input. A pass updates them with the previous
// row of input and multiplies them by the current row's key and query, so that the state is read
// and written once a row.
func delta(a *assembly, _ base.Func) {
	a.base("state", deltaState)
	a.length("state", deltaWidth) // a fourth of the floats, times four bytes
	a.base("keys", deltaKeys)
	a.base("gates", deltaGates)
	a.length("gates", deltaLeft)
	a.ins("LSR", imm(2), deltaLeft)
	a.base("v", deltaV)
	a.base("y", deltaY)
	a.ins("MOVD", a.arg("vStride"), deltaVStride)
	a.ins("MOVD", a.arg("yStride"), deltaYStride)
	a.ins("LSL", imm(2), deltaVStride)
	a.ins("LSL", imm(2), deltaYStride)

	deltaPass(a, false, true)
	last := a.newLabel()
	rows := a.label()
	a.ins("SUBS", imm(1), deltaLeft)
	a.ins("BEQ", last)
	a.ins("ADD", deltaWidth.String()+"<<1", deltaKeys)
	a.ins("ADD", imm(16), deltaGates)
	a.ins("ADD", deltaVStride, deltaV)
	a.ins("ADD", deltaYStride, deltaY)
	deltaPass(a, true, true)
	a.ins("B", rows)
	a.place(last)
	a.ins("ADD", deltaWidth.String()+"<<1", deltaKeys)
	deltaPass(a, true, false)
	a.ret()
}

func deltaPass(a *assembly, update, dots bool) {
	const s, key, query, before vec = 0, 4, 5, 6 // state is in V0 to V3
	a.ins("MOVD", deltaState, deltaRow)
	for r := range gen(3) {
		a.ins("ADD", deltaWidth, deltaRow+r, deltaRow+r+1)
	}
	if update {
		a.ins("SUB", deltaWidth.String()+"<<1", deltaKeys, deltaBefore)
	}
	if dots {
		a.ins("MOVD", deltaKeys, deltaKey)
		a.ins("ADD", deltaWidth, deltaKeys, deltaQuery)
		for r := range vec(4) {
			a.zero(deltaDots+r, deltaQueries+r)
		}
	}
	a.ins("LSR", imm(4), deltaWidth, deltaCount)
	a.loop(deltaCount, func() {
		if update {
			a.take(deltaBefore, before)
		}
		if dots {
			a.take(deltaKey, key)
			a.take(deltaQuery, query)
		}
		for r := range vec(4) {
			p := deltaRow + gen(r)
			if update {
				a.load(p, s+r)
				a.word(fmulElement.element(s+r, s+r, deltaDecay, 0))
				a.word(fmlaElement.element(s+r, before, deltaAdded, int(r)))
				a.put(p, s+r)
			} else {
				a.take(p, s+r)
			}
			if dots {
				a.word(fmla.three(deltaDots+r, s+r, key))
				a.word(fmla.three(deltaQueries+r, s+r, query))
			}
		}
	})
	if dots {
		deltaOutputs(a)
	}
}

// deltaOutputs computes the outputs of a row of input and its δ: with a = S·k and c = S·q, δ = β·(v
// - g·a) and y = g·c + δ·(k·q).
func deltaOutputs(a *assembly) {
	for _, v := range []vec{deltaDots, deltaQueries} {
		a.word(faddp.three(v, v, v+1))
		a.word(faddp.three(v+2, v+2, v+3))
		a.word(faddp.three(v, v, v+2))
	}
	a.load(deltaGates, deltaDecay)
	a.load(deltaV, deltaAdded)
	a.word(fmlsElement.element(deltaAdded, deltaDots, deltaDecay, 0))
	a.word(fmulElement.element(deltaAdded, deltaAdded, deltaDecay, 1))
	a.word(fmulElement.element(0, deltaQueries, deltaDecay, 0))
	a.word(fmlaElement.element(0, deltaAdded, deltaDecay, 2))
	a.store(deltaY, 0)
}
