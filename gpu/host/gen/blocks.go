package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

// splitter writes the loop body that takes one block apart.
type splitter struct {
	*generator
	codes, scales, biases, src reg.Register
	wholes                     reg.Register   // of whole, in place of scales and biases
	mask                       reg.VecVirtual // 15 in every byte
	// sink takes 32 codes of the block, from number disp on, in place of memory.
	sink func(v reg.VecVirtual, disp int)
	// What else is not stored where there is a sink.
	d, dmin, minima reg.VecVirtual
}

// splits are the writers of splitters' bodies, by the names of blocks.
var splits = map[string]func(s *splitter){
	"Q8_0": (*splitter).q8x0, "Q4_0": (*splitter).q4x0, "Q4_1": (*splitter).q4x1, "Q5_0": (*splitter).q5x0, "Q5_1": (*splitter).q5x1,
	"IQ4_NL": (*splitter).iq4nl, "MXFP4": (*splitter).mxfp4, "Q2_K": (*splitter).q2k, "Q3_K": (*splitter).q3k, "Q4_K": (*splitter).q4k,
	"Q5_K": (*splitter).q5k, "Q6_K": (*splitter).q6k, "IQ4_XS": (*splitter).iq4xs,
}

// split takes blocks apart: codes are bytes with a sign, and each group has a scale and perhaps a
// bias.
func (g *generator) split(f base.Func) {
	b := f.Coding.Block()
	s := &splitter{generator: g, codes: pointer("codes"), scales: pointer("scales"), biases: pointer("biases"), src: pointer("src")}
	s.mask = g.keep(g.bytes(15))
	loop(f.Name+"_block", pointer("blocks"), func() {
		splits[b.Name](s)
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

// Offsets of package quant's Whole, and its size. A test of package host compares them.
const (
	wholeScales = 0
	wholeMinima = 32
	wholeD      = 64
	wholeDMin   = 68
	wholeSize   = 72
)

// whole is split with scales and minima as blocks of 256 have them.
func (g *generator) whole(f base.Func) {
	b := f.Coding.Block()
	s := &splitter{generator: g, codes: pointer("codes"), wholes: pointer("wholes"), src: pointer("src")}
	s.mask = g.keep(g.bytes(15))
	loop(f.Name+"_block", pointer("blocks"), func() {
		splits[b.Name](s)
		ADDQ(U32(uint32(b.Size)), s.src)
		ADDQ(U32(uint32(b.Len)), s.codes)
		ADDQ(U32(wholeSize), s.wholes)
	})
	end()
}

// part returns a place in the block's Whole.
func (s *splitter) part(disp int) Mem { return Mem{Base: s.wholes, Disp: disp} }

// numbers stores the fp16 numbers at d, and at dmin if that is not negative, in the block's Whole.
func (s *splitter) numbers(d, dmin int) {
	s.d = s.half(d)
	if s.sink == nil {
		VMOVSS(s.d.AsX(), s.part(wholeD))
	}
	if dmin < 0 {
		return
	}
	s.dmin = s.half(dmin)
	if s.sink == nil {
		VMOVSS(s.dmin.AsX(), s.part(wholeDMin))
	}
}

// setMinima stores minima in the block's Whole.
func (s *splitter) setMinima(v reg.VecVirtual) {
	if s.minima = v; s.sink == nil {
		VMOVDQU(v, s.part(wholeMinima))
	}
}

// center stores minima that are scales times a power of two.
func (s *splitter) center(scales reg.VecVirtual, power uint8) {
	VPSLLW(U8(power), scales, scales)
	s.setMinima(scales)
}

// wholeSixes is sixes for a Whole: 16 bytes have d, dmin, and 12 bytes of scales and minima.
func (s *splitter) wholeSixes() {
	words := func(name string, w ...uint32) Mem {
		return s.generator.table(name, 4, func(i int) Constant { return U32(w[i]) })
	}
	all, first, last, top := XMM(), XMM(), XMM(), XMM()
	VMOVDQU(s.at(0), all)
	VPSRLDQ(U8(4), all, first)   // 4 bytes of scales, 4 of minima, with the top bits of others
	VPSHUFD(U8(0xff), all, last) // the lower bits of these others, twice
	VPSRLVD(words("sixLow", 0, 4, 0, 4), last, last)
	VPAND(words("sixNibble", 0x0f0f0f0f, 0x0f0f0f0f, 0, 0), last, last)
	VPSRLD(U8(2), first, top)
	VPAND(words("sixTop", 0x30303030, 0x30303030, 0, 0), top, top)
	VPOR(top, last, last)
	VPAND(words("sixAll", 0x3f3f3f3f, 0x3f3f3f3f, 0, 0), first, first)
	VPUNPCKLDQ(last, first, first) // 8 scales, 8 minima
	twice := func(unpack func(ops ...Op)) reg.VecVirtual {
		x, y := XMM(), YMM()
		unpack(first, first, x)
		VPMOVZXBW(x, y)
		return y
	}
	VMOVDQU(twice(VPUNPCKLBW), s.part(wholeScales))
	s.setMinima(twice(VPUNPCKHBW))
	s.numbers(0, 2)
}

// bytes returns a vector of one byte in memory.
func (g *generator) bytes(b byte) Mem { return g.same("bytes", 0x01010101*uint32(b)) }

func (s *splitter) at(disp int) Mem   { return Mem{Base: s.src, Disp: disp} }
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

func (s *splitter) q8x0() {
	s.number(0, s.scales)
	y := YMM()
	VMOVDQU(s.at(2), y)
	s.store(y, 0)
}

func (s *splitter) q4x0() {
	s.number(0, s.scales)
	y := s.nibbles(2)
	s.minusByte(y, 8)
	s.store(y, 0)
}

func (s *splitter) q4x1() {
	s.number(0, s.scales)
	s.number(2, s.biases)
	s.store(s.nibbles(4), 0)
}

// fives returns 32 codes of 5 bits: 32 highest bits, then 16 bytes as nibbles has them.
func (s *splitter) fives(disp int) reg.VecVirtual {
	y, high := s.nibbles(disp+4), YMM()
	VPBROADCASTD(s.at(disp), high)
	VPSHUFB(s.generator.table("spread", 8, func(i int) Constant { return U32(uint32(i/2) * 0x01010101) }), high, high)
	bits := s.keep(s.generator.table("bitOf", 8, func(i int) Constant { return U32([]uint32{0x08040201, 0x80402010}[i%2]) }))
	VPAND(bits, high, high)
	VPCMPEQB(bits, high, high)
	VPAND(s.bytes(16), high, high)
	VPOR(high, y, y)
	return y
}

func (s *splitter) q5x0() {
	s.number(0, s.scales)
	y := s.fives(2)
	s.minusByte(y, 16)
	s.store(y, 0)
}

func (s *splitter) q5x1() {
	s.number(0, s.scales)
	s.number(2, s.biases)
	s.store(s.fives(4), 0)
}

// looked replaces codes of 4 bits by what they stand for.
func (s *splitter) looked(name string, values [16]int8, v reg.VecVirtual) {
	table := s.keep(s.generator.table(name, 8, func(i int) Constant {
		w := uint32(0)
		for j := range 4 {
			w |= uint32(uint8(values[i%4*4+j])) << (8 * j)
		}
		return U32(w)
	}))
	VPSHUFB(v, table, v)
}

// What the codes of IQ4_NL and IQ4_XS, and those of MXFP4 in halves, stand for.
var (
	iq4   = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}
	halfs = [16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}
)

func (s *splitter) iq4nl() {
	s.number(0, s.scales)
	y := s.nibbles(2)
	s.looked("iq4", iq4, y)
	s.store(y, 0)
}

// mxfp4 makes 2^(e-128) of the exponent e, which is not a normal number for 0 and 1, and no number
// for 255.
func (s *splitter) mxfp4() {
	e, scale, odd := GP32(), GP32(), GP32()
	MOVBLZX(s.at(0), e)
	MOVL(e, scale)
	SHLL(U8(23), scale)
	MOVL(U32(1<<22), odd)
	CMPL(e, U32(0))
	CMOVLEQ(odd, scale)
	MOVL(U32(0x7fc00000), odd)
	CMPL(e, U32(255))
	CMOVLEQ(odd, scale)
	x := XMM()
	VMOVD(scale, x)
	VMULSS(s.same("float", 0x3f000000), x, x)
	VMOVSS(x, Mem{Base: s.scales})
	y := s.nibbles(1)
	s.looked("halves", halfs, y)
	s.store(y, 0)
}

// eight stores 8 numbers: the integers in lanes times by.
func (s *splitter) eight(v, by reg.VecVirtual, to reg.Register, disp int) {
	VCVTDQ2PS(v, v)
	VMULPS(by, v, v)
	VMOVUPS(v, Mem{Base: to, Disp: disp})
}

// eightBytes is eight for the bytes of a register.
func (s *splitter) eightBytes(r reg.GPVirtual, by reg.VecVirtual, to reg.Register, disp int, less uint32) {
	x, y := XMM(), YMM()
	VMOVQ(r, x)
	VPMOVZXBD(x, y)
	if less != 0 {
		VPSUBD(s.same("less", less), y, y)
	}
	s.eight(y, by, to, disp)
}

// word loads 4 bytes.
func (s *splitter) word(disp int) reg.GPVirtual {
	r := GP64()
	MOVL(s.at(disp), r.As32())
	return r
}

// masked returns r, shifted right, with a mask for each byte.
func masked(r reg.GPVirtual, right int, mask uint32) reg.GPVirtual {
	out := GP64()
	MOVL(r.As32(), out.As32())
	if right > 0 {
		SHRL(U8(right), out.As32())
	}
	ANDL(U32(mask*0x01010101), out.As32())
	return out
}

// joined returns low with the bits of high 32 bits above it.
func joined(low, high reg.GPVirtual) reg.GPVirtual {
	SHLQ(U8(32), high)
	ORQ(high, low)
	return low
}

// sixes stores 8 scales and 8 minima of 6 bits in 12 bytes at disp 4, times d and -dmin.
func (s *splitter) sixes() {
	if s.wholes != nil {
		s.wholeSixes()
		return
	}
	w0, w1, w2 := s.word(4), s.word(8), s.word(12)
	high := func(w2Right int, w reg.GPVirtual) reg.GPVirtual {
		r, top := masked(w2, w2Right, 15), masked(w, 2, 0x30)
		ORL(top.As32(), r.As32())
		return r
	}
	scales := joined(masked(w0, 0, 63), high(0, w0))
	minima := joined(masked(w1, 0, 63), high(4, w1))
	dmin := s.half(2)
	s.minus(dmin)
	s.eightBytes(scales, s.half(0), s.scales, 0, 0)
	s.eightBytes(minima, dmin, s.biases, 0, 0)
}

// pair returns the codes in the low and in the high halves of 32 bytes.
func (s *splitter) pair(disp int) (low, high reg.VecVirtual) {
	low, high = YMM(), YMM()
	VMOVDQU(s.at(disp), low)
	VPSRLW(U8(4), low, high)
	VPAND(s.mask, low, low)
	VPAND(s.mask, high, high)
	return low, high
}

func (s *splitter) q4k() {
	s.sixes()
	for k := range 4 {
		low, high := s.pair(16 + 32*k)
		s.store(low, 64*k)
		s.store(high, 64*k+32)
	}
}

// bitTo returns bit from of every byte of v at place to.
func (s *splitter) bitTo(v reg.VecVirtual, from, to int) reg.VecVirtual {
	return s.bitsTo(v, from, to, 1)
}

// bitsTo is bitTo for the bits of mask from bit from on.
func (s *splitter) bitsTo(v reg.VecVirtual, from, to int, mask byte) reg.VecVirtual {
	y := YMM()
	switch {
	case from > to:
		VPSRLW(U8(from-to), v, y)
		VPAND(s.bytes(mask<<to), y, y)
	case from < to:
		VPSLLW(U8(to-from), v, y)
		VPAND(s.bytes(mask<<to), y, y)
	default:
		VPAND(s.bytes(mask<<to), v, y)
	}
	return y
}

func (s *splitter) q5k() {
	s.sixes()
	bits := YMM()
	VMOVDQU(s.at(16), bits)
	for k := range 4 {
		low, high := s.pair(48 + 32*k)
		VPOR(s.bitTo(bits, 2*k, 4), low, low)
		VPOR(s.bitTo(bits, 2*k+1, 4), high, high)
		s.store(low, 64*k)
		s.store(high, 64*k+32)
	}
}

func (s *splitter) q6k() {
	if s.wholes != nil {
		y := YMM()
		VPMOVSXBW(s.at(192), y)
		VMOVDQU(y, s.part(wholeScales))
		s.numbers(208, 208)
		s.center(y, 5)
	} else {
		d := s.half(208)
		for k := range 2 {
			y := YMM()
			VPMOVSXBD(s.at(192+8*k), y)
			s.eight(y, d, s.scales, 32*k)
		}
	}
	for k := range 2 {
		tops := YMM()
		VMOVDQU(s.at(128+32*k), tops)
		for j := range 2 {
			low, high := s.pair(64*k + 32*j)
			VPOR(s.bitsTo(tops, 2*j, 4, 3), low, low)
			VPOR(s.bitsTo(tops, 4+2*j, 4, 3), high, high)
			if s.wholes == nil {
				s.minusByte(low, 32)
				s.minusByte(high, 32)
			}
			s.store(low, 128*k+32*j)
			s.store(high, 128*k+64+32*j)
		}
	}
}

func (s *splitter) q2k() {
	if s.wholes != nil {
		both, low := YMM(), YMM()
		VPMOVZXBW(s.at(0), both)
		VPAND(s.mask, both, low)
		VPSRLW(U8(4), both, both)
		VMOVDQU(low, s.part(wholeScales))
		s.setMinima(both)
		s.numbers(80, 82)
	} else {
		d, dmin := s.half(80), s.half(82)
		s.minus(dmin)
		for k := range 2 {
			both, low := YMM(), YMM()
			VPMOVZXBD(s.at(8*k), both)
			VPAND(s.same("low", 15), both, low)
			VPSRLD(U8(4), both, both)
			s.eight(low, d, s.scales, 32*k)
			s.eight(both, dmin, s.biases, 32*k)
		}
	}
	for k := range 2 {
		codes := YMM()
		VMOVDQU(s.at(16+32*k), codes)
		for j := range 4 {
			s.store(s.bitsTo(codes, 2*j, 0, 3), 128*k+32*j)
		}
	}
}

func (s *splitter) q3k() {
	w0, w1, w2 := s.word(96), s.word(100), s.word(104)
	part := func(w reg.GPVirtual, right, top int) reg.GPVirtual {
		r := masked(w, right, 15)
		high := masked(w2, top, 3)
		SHLL(U8(4), high.As32())
		ORL(high.As32(), r.As32())
		return r
	}
	low, high := joined(part(w0, 0, 0), part(w1, 0, 2)), joined(part(w0, 4, 4), part(w1, 4, 6))
	if s.wholes != nil {
		x, y := XMM(), YMM()
		VMOVQ(low, x)
		VPINSRQ(U8(1), high, x, x)
		VPMOVZXBW(x, y)
		VPSUBW(s.same("lessWords", 32|32<<16), y, y)
		VMOVDQU(y, s.part(wholeScales))
		s.numbers(108, 108)
		s.center(y, 2)
	} else {
		d := s.half(108)
		s.eightBytes(low, d, s.scales, 0, 32)
		s.eightBytes(high, d, s.scales, 32, 32)
	}
	tops := YMM()
	VMOVDQU(s.at(0), tops)
	for k := range 2 {
		codes := YMM()
		VMOVDQU(s.at(32+32*k), codes)
		for j := range 4 {
			y := s.bitsTo(codes, 2*j, 0, 3)
			VPOR(s.bitTo(tops, 4*k+j, 2), y, y)
			if s.wholes == nil {
				s.minusByte(y, 4)
			}
			s.store(y, 128*k+32*j)
		}
	}
}

func (s *splitter) iq4xs() {
	low, high := YMM(), YMM()
	VPBROADCASTD(s.at(4), low)
	VPSRLVD(s.generator.table("fours", 8, func(i int) Constant { return U32(uint32(4 * i)) }), low, low)
	VPAND(s.same("low", 15), low, low)
	VPBROADCASTW(s.at(2), high)
	VPSRLVD(s.generator.table("twos", 8, func(i int) Constant { return U32(uint32(2 * i)) }), high, high)
	VPAND(s.same("low", 3), high, high)
	VPSLLD(U8(4), high, high)
	VPOR(high, low, low)
	VPSUBD(s.same("less", 32), low, low)
	if s.wholes != nil {
		VPSLLD(U8(16), low, high)
		VPBLENDW(U8(0xaa), high, low, low)
		VMOVDQU(low, s.part(wholeScales))
		s.numbers(0, -1)
	} else {
		s.eight(low, s.half(0), s.scales, 0)
	}
	for k := range 8 {
		y := s.nibbles(8 + 16*k)
		s.looked("iq4", iq4, y)
		s.store(y, 32*k)
	}
}

// widenCodes writes code·scale + bias of groups of 16 or 32 codes.
func (g *generator) widenCodes(f base.Func) {
	group := f.Group
	dst, codes, scales, biases := pointer("dst"), pointer("codes"), pointer("scales"), pointer("biases")
	loop(f.Name+"_group", pointer("groups"), func() {
		scale, bias := YMM(), YMM()
		VBROADCASTSS(Mem{Base: scales}, scale)
		if f.Biased {
			VBROADCASTSS(Mem{Base: biases}, bias)
		}
		for i := 0; i < group; i += 8 {
			y := YMM()
			VPMOVSXBD(Mem{Base: codes, Disp: i}, y)
			VCVTDQ2PS(y, y)
			if f.Biased {
				VFMADD213PS(bias, scale, y)
			} else {
				VMULPS(scale, y, y)
			}
			VMOVUPS(y, Mem{Base: dst, Disp: 4 * i})
		}
		ADDQ(U32(uint32(group)), codes)
		ADDQ(U32(uint32(4*group)), dst)
		ADDQ(U32(4), scales)
		if f.Biased {
			ADDQ(U32(4), biases)
		}
	})
	end()
}

// oneCodes is plain for one row of X, where the row of W is codes, scales and biases.
func (g *generator) oneCodes(f base.Func) {
	codes, scales, biases, x := pointer("codes"), pointer("scales"), pointer("biases"), pointer("x")
	var sums [4]reg.VecVirtual
	for i := range sums {
		sums[i] = g.zero()
	}
	loop("loop_"+f.Name, pointer("blocks"), func() {
		scale, bias := YMM(), YMM()
		for j := range base.BlockInputs / 8 {
			if k := 8 * j / f.Group; 8*j%f.Group == 0 {
				VBROADCASTSS(Mem{Base: scales, Disp: 4 * k}, scale)
				if f.Biased {
					VBROADCASTSS(Mem{Base: biases, Disp: 4 * k}, bias)
				}
			}
			q := YMM()
			VPMOVSXBD(Mem{Base: codes, Disp: 8 * j}, q)
			VCVTDQ2PS(q, q)
			if f.Biased {
				VFMADD213PS(bias, scale, q)
			} else {
				VMULPS(scale, q, q)
			}
			VFMADD231PS(Mem{Base: x, Disp: 32 * j}, q, sums[j%4])
		}
		groups := uint32(4 * base.BlockInputs / f.Group)
		ADDQ(U32(base.BlockInputs), codes)
		ADDQ(U32(4*base.BlockInputs), x)
		ADDQ(U32(groups), scales)
		if f.Biased {
			ADDQ(U32(groups), biases)
		}
	})
	VADDPS(sums[1], sums[0], sums[0])
	VADDPS(sums[3], sums[2], sums[2])
	VADDPS(sums[2], sums[0], sums[0])
	sum := g.reduce(sums[0])
	VZEROUPPER()
	Store(sum, Return("y"))
	RET()
}

// Offsets of package host's blockArgs. A test there compares them with the struct.
const (
	blockCodes  = 0
	blockScales = 8
	blockBiases = 16
	blockCols   = 24
	blockRows   = 32
	blockX      = 40
	blockY      = 104
)

// blockDot is the product of a row's codes with rows of int8.
type blockDot struct {
	*generator
	biased bool

	codes, scales, biases, x, of reg.Register
	sums                         reg.Register   // of wholeDot
	ones                         reg.VecVirtual // 1 in every 16 bits
}

// eachRow repeats body for the rows of X. It adds to the row's lanes.
func (g *generator) eachRow(f base.Func, body func(d *blockDot, cols reg.GPVirtual, acc reg.VecVirtual)) {
	d := &blockDot{generator: g, biased: f.Biased}
	a := pointer("a")
	field := func(disp int) reg.GPVirtual {
		r := GP64()
		MOVQ(Mem{Base: a, Disp: disp}, r)
		return r
	}
	d.ones = g.keep(g.same("pair", 0x00010001))
	rows, at := field(blockRows), GP64()
	XORQ(at, at)
	loop(f.Name+"_row", rows, func() {
		d.codes, d.scales, d.biases = field(blockCodes), field(blockScales), field(blockBiases)
		cols, x, of := field(blockCols), GP64(), GP64()
		MOVQ(Mem{Base: a, Index: at, Scale: 8, Disp: blockX}, x)
		LEAQ(Mem{Base: x, Index: cols, Scale: 1}, of)
		d.x, d.of = x, of
		acc := g.zero()
		body(d, cols, acc)
		y := GP64()
		MOVQ(at, y)
		SHLQ(U8(5), y)
		VMOVUPS(acc, Mem{Base: a, Index: y, Scale: 1, Disp: blockY})
		INCQ(at)
	})
	end()
}

// blockDot takes eight groups of 32 at a time; those that are left over, and the sum of lanes, are
// the caller's.
func (g *generator) blockDot(f base.Func) {
	g.eachRow(f, func(d *blockDot, cols reg.GPVirtual, acc reg.VecVirtual) {
		SHRQ(U8(8), cols)
		TESTQ(cols, cols)
		JZ(LabelRef(f.Name + "_done"))
		loop(f.Name+"_groups", cols, func() { d.eight(acc) })
		Label(f.Name + "_done")
	})
}

// eight adds the totals of eight groups.
func (d *blockDot) eight(acc reg.VecVirtual) {
	dot, s, sum := d.totals(), YMM(), YMM()
	low, high := YMM(), YMM()
	VMOVUPS(Mem{Base: d.of}, low)
	VMOVUPS(Mem{Base: d.of, Disp: 32}, high)
	VSHUFPS(U8(0x88), high, low, s)
	VPERMPD(U8(0xd8), s, s)
	VCVTDQ2PS(dot, dot)
	VMULPS(Mem{Base: d.scales}, s, s)
	VMULPS(s, dot, dot)
	if d.biased {
		VSHUFPS(U8(0xdd), high, low, sum)
		VPERMPD(U8(0xd8), sum, sum)
		VMULPS(Mem{Base: d.biases}, sum, sum)
		VADDPS(sum, dot, dot)
		ADDQ(U32(32), d.biases)
	}
	VADDPS(dot, acc, acc)
	ADDQ(U32(32), d.scales)
	ADDQ(U32(256), d.codes)
	ADDQ(U32(256), d.x)
	ADDQ(U32(64), d.of)
}

// wholeDot takes a block of 256 at a time.
func (g *generator) wholeDot(f base.Func) {
	g.eachRow(f, func(d *blockDot, cols reg.GPVirtual, acc reg.VecVirtual) {
		SHRQ(U8(8), cols)
		sums := GP64()
		LEAQ(Mem{Base: d.of, Index: cols, Scale: 8}, sums)
		d.sums = sums
		var order reg.VecVirtual
		if f.Group == 16 { // of two words, the first 8 times and then the second
			order = g.keep(g.wordsInTurn())
		}
		loop(f.Name+"_blocks", cols, func() { d.whole(acc, order) })
	})
}

// whole adds a block.
func (d *blockDot) whole(acc, order reg.VecVirtual) {
	var totals [2]reg.VecVirtual
	for k := range 8 {
		d.scaled(&totals[k%2], d.pairs(32*k), k, order)
	}
	d.addWhole(acc, totals, nil)
	ADDQ(U32(wholeSize), d.scales)
	ADDQ(U32(256), d.codes)
	ADDQ(U32(256), d.x)
	ADDQ(U32(8), d.of)
}

// addWhole adds the products of a block, which are in two totals. s has what is not in memory.
func (d *blockDot) addWhole(acc reg.VecVirtual, totals [2]reg.VecVirtual, s *splitter) {
	total, of, by := totals[0], YMM(), YMM()
	VPADDD(totals[1], total, total)
	VCVTDQ2PS(total, total)
	VBROADCASTSS(Mem{Base: d.of}, of)
	times := func(kept func() reg.VecVirtual, disp int) reg.VecVirtual {
		if s != nil {
			VMULPS(of, kept(), by)
			return by
		}
		VBROADCASTSS(Mem{Base: d.scales, Disp: disp}, by)
		VMULPS(of, by, by)
		return by
	}
	VMULPS(times(func() reg.VecVirtual { return s.d }, wholeD), total, total)
	if d.biased {
		least := YMM()
		if s != nil {
			VPMADDWD(Mem{Base: d.sums}, s.minima, least)
		} else {
			VMOVDQU(Mem{Base: d.sums}, least)
			VPMADDWD(Mem{Base: d.scales, Disp: wholeMinima}, least, least)
		}
		VCVTDQ2PS(least, least)
		VMULPS(times(func() reg.VecVirtual { return s.dmin }, wholeDMin), least, least)
		VSUBPS(least, total, total)
		ADDQ(U32(32), d.sums)
	}
	VADDPS(total, acc, acc)
}

// Offsets of package host's rowArgs. A test there compares them with the struct.
const (
	rowW      = 0
	rowRows   = 8
	rowBlocks = 16
	rowX      = 24
	rowOf     = 32
	rowSums   = 40
	rowY      = 48
	rowWhole  = 56
)

// oneWhole is wholeDot for one row of X, where codes go from a block into products.
func (g *generator) oneWhole(f base.Func) {
	b := f.Coding.Block()
	a := pointer("a")
	field := func(disp int) reg.GPVirtual {
		r := GP64()
		MOVQ(Mem{Base: a, Disp: disp}, r)
		return r
	}
	s := &splitter{generator: g, wholes: field(rowWhole), src: field(rowW)}
	s.mask = g.keep(g.bytes(15))
	y := field(rowY)
	var order reg.VecVirtual
	if b.Group == 16 {
		order = g.keep(g.wordsInTurn())
	}
	loop(f.Name+"_row", field(rowRows), func() {
		d := &blockDot{generator: g, biased: f.Biased, scales: s.wholes, x: field(rowX), of: field(rowOf), sums: field(rowSums)}
		acc := g.zero()
		loop(f.Name+"_block", field(rowBlocks), func() {
			var totals [2]reg.VecVirtual
			n := 0
			s.sink = func(q reg.VecVirtual, disp int) {
				d.scaled(&totals[n%2], d.times(q, disp), disp/32, order)
				n++
			}
			splits[b.Name](s)
			d.addWhole(acc, totals, s)
			ADDQ(U32(uint32(b.Size)), s.src)
			ADDQ(U32(256), d.x)
			ADDQ(U32(8), d.of)
		})
		half, low := XMM(), acc.AsX().(reg.VecVirtual)
		VEXTRACTF128(U8(1), acc.AsY(), half)
		VADDPS(half, low, low)
		VMOVHLPS(low, low, half)
		VADDPS(half, low, low)
		VMOVSHDUP(low, half)
		VADDSS(half, low, low)
		VMOVSS(low, Mem{Base: y})
		ADDQ(U32(4), y)
	})
	end()
}

// wordsInTurn is the order of two words in which the first comes 8 times, and then the second.
func (g *generator) wordsInTurn() Mem {
	return g.table("wordsInTurn", 8, func(i int) Constant { return U32([]uint32{0x01000100, 0x03020302}[i/4]) })
}

// scaled adds products of the k-th 32 inputs of a block times their scales to a total.
func (d *blockDot) scaled(total *reg.VecVirtual, p reg.VecVirtual, k int, order reg.VecVirtual) {
	scale := YMM()
	VPBROADCASTD(Mem{Base: d.scales, Disp: wholeScales + 4*k}, scale)
	if order != nil {
		VPSHUFB(order, scale, scale)
	}
	VPMADDWD(scale, p, p)
	if *total != nil {
		VPADDD(p, *total, *total)
	} else {
		*total = p
	}
}

// pairs returns the products of 32 inputs from at on, two of them added in 16 bits. Codes of
// formats with biases have no sign. The others have one, of which the inputs are relieved: a code
// of -128 times inputs of up to 127, twice, is below 2^15.
func (d *blockDot) pairs(at int) reg.VecVirtual {
	q := YMM()
	VMOVDQU(Mem{Base: d.codes, Disp: at}, q)
	return d.times(q, at)
}

// times is pairs for codes in a register, which it changes.
func (d *blockDot) times(q reg.VecVirtual, at int) reg.VecVirtual {
	y := YMM()
	if d.biased {
		VPMADDUBSW(Mem{Base: d.x, Disp: at}, q, y)
		return y
	}
	VMOVDQU(Mem{Base: d.x, Disp: at}, y)
	VPSIGNB(q, y, y)
	VPABSB(q, q)
	VPMADDUBSW(y, q, y)
	return y
}

// totals returns those of eight groups.
func (d *blockDot) totals() reg.VecVirtual {
	four := func(first int) reg.VecVirtual { // of four groups: their first halves, then their second
		two := func(first int) reg.VecVirtual {
			a, b := d.pairs(first), d.pairs(first+32)
			VPMADDWD(d.ones, a, a)
			VPMADDWD(d.ones, b, b)
			VPHADDD(b, a, a)
			return a
		}
		a, b := two(first), two(first+64)
		VPHADDD(b, a, a)
		return a
	}
	low, high, first := four(0), four(128), YMM()
	VPERM2I128(U8(0x20), high, low, first)
	VPERM2I128(U8(0x31), high, low, low)
	VPADDD(first, low, low)
	return low
}

// halves widens fp16 numbers.
func (g *generator) halves(f base.Func) {
	dst, row := pointer("dst"), pointer("row")
	loop("loop_"+f.Name, pointer("blocks"), func() {
		for j := range base.UnpackInputs / 8 {
			y := YMM()
			VCVTPH2PS(Mem{Base: row, Disp: 16 * j}, y)
			VMOVUPS(y, Mem{Base: dst, Disp: 32 * j})
		}
		ADDQ(U32(4*base.UnpackInputs), dst)
		ADDQ(U32(2*base.UnpackInputs), row)
	})
	end()
}
