package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

// Stripes are 16 rows of W in blocks, taken apart and transposed, so that each lane of a register
// is a row.

// Offsets of package host's stripeArgs, and of what its x, of and lanes have. A test there compares
// them.
const (
	stripeW       = 0
	stripeNumbers = 8
	stripeOther   = 16
	stripeSegs    = 24
	stripeX       = 32
	stripeOf      = 40
	stripeLanes   = 48
	stripeY       = 56
	stripeRows    = 8  // of X
	stripeOfShort = 12 // of a group of X: float32 s and S, int32 less
	stripeOfWhole = 36 // of a block of X: float32 s, int16 [16] sums
)

// stripe is what a product of a stripe has.
type stripe struct {
	*generator
	rows   int
	of     int // bytes of what a group or a block of X has beside its inputs
	inputs int // bytes of these

	w, numbers, x, ofs reg.Register // where the group or block is
}

// ofRow is a number of what a group or block of X has beside its inputs.
func (s *stripe) ofRow(r, disp int) Mem { return Mem{Base: s.ofs, Disp: s.of*r + disp} }

// word is a 32-bit word of the inputs.
func (s *stripe) word(r, i int) Mem { return Mem{Base: s.x, Disp: s.inputs*r + 4*i} }

// zeros returns a register of zeros for each row of X.
func (s *stripe) zeros() (all []reg.VecVirtual) {
	for range s.rows {
		all = append(all, wideZero())
	}
	return all
}

// multiply adds products of words of inputs, from the first on. bits makes codes of W with a sign
// numbers without one; nil: they have none.
func (s *stripe) multiply(sums []reg.VecVirtual, first, n int, bits reg.VecVirtual) {
	for i := first; i < first+n; i++ {
		w, from := ZMM(), Mem{Base: s.w, Disp: 64 * i}
		if bits == nil {
			VMOVUPS(from, w)
		} else {
			VPXORD(from, bits, w)
		}
		for r, sum := range sums {
			VPDPBUSD_BCST(s.word(r, i), w, sum)
		}
	}
}

// bytes80 returns what makes codes with a sign numbers without one, 128 more.
func (g *generator) bytes80() reg.VecVirtual {
	z := ZMM()
	VMOVUPS(g.table("wideBytes80", 16, func(int) Constant { return U32(0x80808080) }), z)
	return z
}

// move moves an address.
func move(r reg.Register, by int) {
	if by > 0 {
		ADDQ(U32(uint32(by)), r)
	}
}

func copied(r reg.Register) reg.GPVirtual {
	c := GP64()
	MOVQ(r, c)
	return c
}

// loaded returns a register of W.
func loaded(from reg.Register, disp int) reg.VecVirtual {
	z := ZMM()
	VMOVUPS(Mem{Base: from, Disp: disp}, z)
	return z
}

// stripeShort multiplies a stripe of blocks of 32 by rows of X. It adds up the eight lanes of
// blockArgs one after the other, of which each has every eighth group.
func (g *generator) stripeShort(f base.Func) {
	a := pointer("a")
	field := fieldsOf(a)
	s := &stripe{generator: g, rows: f.Rows, of: stripeOfShort, inputs: 32, x: field(stripeX), ofs: field(stripeOf)}
	bits := g.bytes80()
	w, numbers, lanes, n := field(stripeW), field(stripeNumbers), field(stripeLanes), GP64()
	var other reg.Register
	if f.Biased {
		other = field(stripeOther)
	}
	MOVQ(U32(8), n)
	loop(f.Name+"_lane", n, func() {
		s.w, s.numbers = copied(w), copied(numbers)
		var biases reg.Register
		if f.Biased {
			biases = copied(other)
		}
		acc := s.zeros()
		loop(f.Name+"_segment", field(stripeSegs), func() {
			s.group(acc, bits, biases)
			move(s.w, 8*512)
			move(s.numbers, 8*64)
			if f.Biased {
				move(biases, 8*64)
			}
			move(s.x, stripeRows*s.inputs)
			move(s.ofs, stripeRows*s.of)
		})
		for r, v := range acc {
			VMOVUPS(v, Mem{Base: lanes, Disp: 64 * r})
		}
		move(lanes, 64*stripeRows)
		move(w, 512)
		move(numbers, 64)
		if f.Biased {
			move(other, 64)
		}
	})
	s.addLanes(a)
	end()
}

// group adds a group of 32 inputs to the sums of a lane.
func (s *stripe) group(acc []reg.VecVirtual, bits reg.VecVirtual, other reg.Register) {
	sums := make([]reg.VecVirtual, s.rows)
	for r := range sums {
		sums[r] = ZMM()
		VPBROADCASTD(s.ofRow(r, 8), sums[r])
	}
	s.multiply(sums, 0, 8, bits)
	scales := loaded(s.numbers, 0)
	var biases reg.VecVirtual
	if other != nil {
		biases = loaded(other, 0)
	}
	for r, sum := range sums {
		d := ZMM()
		VCVTDQ2PS(sum, sum)
		VMULPS_BCST(s.ofRow(r, 0), scales, d)
		VMULPS(d, sum, sum)
		if biases != nil {
			VMULPS_BCST(s.ofRow(r, 4), biases, d)
			VADDPS(d, sum, sum)
		}
		VADDPS(sum, acc[r], acc[r])
	}
}

// addLanes adds the lanes up, and stores the sums where y points to.
func (s *stripe) addLanes(a reg.Register) {
	lanes := fieldsOf(a)(stripeLanes)
	for r := range s.rows {
		y := GP64()
		MOVQ(Mem{Base: a, Disp: stripeY + 8*r}, y)
		lane := func(i int) Mem { return Mem{Base: lanes, Disp: 64 * (stripeRows*i + r)} }
		pair := func(i int) reg.VecVirtual {
			z := ZMM()
			VMOVUPS(lane(i), z)
			VADDPS(lane(i+4), z, z)
			return z
		}
		even, odd := pair(0), pair(1)
		VADDPS(pair(2), even, even)
		VADDPS(pair(3), odd, odd)
		VADDPS(odd, even, even)
		VMOVUPS(even, Mem{Base: y})
	}
}
