package main

import (
	"log"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// splitter writes the loop body that takes one block apart.
type splitter struct {
	*generator
	block                      *quant.Block
	codes, scales, biases, src reg.Register
	wholes                     reg.Register      // of whole, in place of scales and biases
	mask                       reg.VecVirtual    // 15 in every byte
	held                       reg.VecVirtual    // valuesOf, where a function has it in a register
	topTables                  [2]reg.VecVirtual // thirdBits, likewise
	fifths                     []reg.VecVirtual  // fifthBits, likewise
	// sink takes 32 codes of the block, from number disp on, in place of memory.
	sink func(v reg.VecVirtual, disp int)
	// What else is not stored where there is a sink: minima, and where a block has d.
	minima reg.VecVirtual
	d      int
	taken  int // which block after src is taken
	// Of a function of one row: its name, and whether blocks are prefetched by pages.
	name  string
	pages Mem
	// The scales as words: in the halves those of even and of odd groups of 16, or twice those of
	// groups of 32.
	scaleWords reg.VecVirtual
	steps      []func() // of oneShort, see there
	wide       wideSplitter
	// Of oneSixes: which bits of bytes are a scale or minimum, its lower 4 bits, and the top 2.
	sixMasks [3]reg.GPVirtual
}

// kept reports whether scales and minima stay whole numbers: in a Whole, or in registers.
func (s *splitter) kept() bool { return s.wholes != nil || s.sink != nil }

// apart takes one block apart.
func (s *splitter) apart() {
	if s.block.Bits != 0 {
		s.short()
		return
	}
	split := s.split()
	split.scales(s)
	split.codes(s)
}

// split returns what takes blocks of 256 apart.
func (s *splitter) split() split {
	split, ok := splits[s.block.Name]
	if !ok {
		log.Fatalf("gen: nothing takes blocks of %s apart", s.block)
	}
	return split
}

// split takes blocks apart: codes are bytes with a sign, and each group has a scale and perhaps a
// bias.
func (g *generator) split(f base.Func) {
	b := f.Coding.Block()
	s := &splitter{generator: g, block: b, codes: pointer("codes"), scales: pointer("scales"), biases: pointer("biases"), src: pointer("src")}
	s.mask = g.keep(g.bytes(15))
	loop(f.Name+"_block", pointer("blocks"), func() {
		s.apart()
		groups := b.Len / b.Group
		ADDQ(U32(uint32(b.Size)), s.src)
		ADDQ(U32(uint32(b.Len)), s.codes)
		ADDQ(U32(uint32(4*groups)), s.scales)
		if b.Biased {
			ADDQ(U32(uint32(4*groups)), s.biases)
		}
	})
	end()
}

// bytes returns a vector of one byte in memory.
func (g *generator) bytes(b byte) Mem { return g.same("bytes", 0x01010101*uint32(b)) }

// at is a place in the block that is taken.
func (s *splitter) at(disp int) Mem { return Mem{Base: s.src, Disp: s.taken*s.block.Size + disp} }

func (s *splitter) code(disp int) Mem { return Mem{Base: s.codes, Disp: disp} }

// half returns the fp16 number at disp in every lane.
func (s *splitter) half(disp int) reg.VecVirtual {
	x, y := XMM(), YMM()
	VPBROADCASTW(s.at(disp), x)
	VCVTPH2PS(x, y)
	return y
}

// minus changes the sign.
func (s *splitter) minus(v reg.VecVirtual) {
	VXORPS(s.same("minus", 1<<31), v, v)
}

// number stores the fp16 number at disp as the scale or the bias of the block's only group.
func (s *splitter) number(disp int, to reg.Register) {
	VMOVSS(s.half(disp).AsX(), Mem{Base: to})
}

// nibbles returns 32 codes of 4 bits: the low halves of 16 bytes, then the high ones.
func (s *splitter) nibbles(disp int) reg.VecVirtual {
	low, high, y := XMM(), XMM(), YMM()
	VMOVDQU(s.at(disp), low)
	VPSRLW(U8(4), low, high)
	VINSERTI128(U8(1), high, low.AsY(), y)
	VPAND(s.mask, y, y)
	return y
}

func (s *splitter) store(v reg.VecVirtual, disp int) {
	if s.sink != nil {
		s.sink(v, disp)
		return
	}
	VMOVDQU(v, s.code(disp))
}

func (s *splitter) minusByte(v reg.VecVirtual, b byte) { VPSUBB(s.bytes(b), v, v) }

// looked replaces codes of 4 bits by more than what they stand for.
func (s *splitter) looked(more int8, v reg.VecVirtual) {
	table := s.held
	if table == nil {
		table = s.valuesOf(more)
	}
	VPSHUFB(v, table, v)
}

// valuesOf returns what codes of 4 bits stand for, and more, in a register.
func (s *splitter) valuesOf(more int8) reg.VecVirtual {
	of := s.block.Table
	name := of.Name
	if more != 0 {
		name += "Least"
	}
	return s.keep(s.generator.table(name, 8, func(i int) Constant {
		w := uint32(0)
		for j := range 4 {
			w |= uint32(uint8(of.Values[i%4*4+j]+more)) << (8 * j)
		}
		return U32(w)
	}))
}
