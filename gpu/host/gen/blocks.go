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
	mask                       reg.VecVirtual // 15 in every byte
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

func (s *splitter) store(v reg.VecVirtual, disp int) { VMOVDQU(v, s.code(disp)) }

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
	d := s.half(208)
	for k := range 2 {
		y := YMM()
		VPMOVSXBD(s.at(192+8*k), y)
		s.eight(y, d, s.scales, 32*k)
	}
	for k := range 2 {
		tops := YMM()
		VMOVDQU(s.at(128+32*k), tops)
		for j := range 2 {
			low, high := s.pair(64*k + 32*j)
			VPOR(s.bitsTo(tops, 2*j, 4, 3), low, low)
			VPOR(s.bitsTo(tops, 4+2*j, 4, 3), high, high)
			s.minusByte(low, 32)
			s.minusByte(high, 32)
			s.store(low, 128*k+32*j)
			s.store(high, 128*k+64+32*j)
		}
	}
}

func (s *splitter) q2k() {
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
	for k := range 2 {
		codes := YMM()
		VMOVDQU(s.at(16+32*k), codes)
		for j := range 4 {
			s.store(s.bitsTo(codes, 2*j, 0, 3), 128*k+32*j)
		}
	}
}

func (s *splitter) q3k() {
	d := s.half(108)
	w0, w1, w2 := s.word(96), s.word(100), s.word(104)
	part := func(w reg.GPVirtual, right, top int) reg.GPVirtual {
		r := masked(w, right, 15)
		high := masked(w2, top, 3)
		SHLL(U8(4), high.As32())
		ORL(high.As32(), r.As32())
		return r
	}
	s.eightBytes(joined(part(w0, 0, 0), part(w1, 0, 2)), d, s.scales, 0, 32)
	s.eightBytes(joined(part(w0, 4, 4), part(w1, 4, 6)), d, s.scales, 32, 32)
	tops := YMM()
	VMOVDQU(s.at(0), tops)
	for k := range 2 {
		codes := YMM()
		VMOVDQU(s.at(32+32*k), codes)
		for j := range 4 {
			y := s.bitsTo(codes, 2*j, 0, 3)
			VPOR(s.bitTo(tops, 4*k+j, 2), y, y)
			s.minusByte(y, 4)
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
	s.eight(low, s.half(0), s.scales, 0)
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

// blockDot is the product of a row's codes with rows of int8, eight groups at a time; those that are
// left over, and the sum of lanes, are the caller's.
type blockDot struct {
	*generator
	group  int
	biased bool

	codes, scales, biases, x, of reg.Register
	ones                         reg.VecVirtual // 1 in every 16 bits
}

func (g *generator) blockDot(f base.Func) {
	d := &blockDot{generator: g, group: f.Group, biased: f.Biased}
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
		codes, scales, biases := field(blockCodes), field(blockScales), field(blockBiases)
		cols, x, of := field(blockCols), GP64(), GP64()
		MOVQ(Mem{Base: a, Index: at, Scale: 8, Disp: blockX}, x)
		LEAQ(Mem{Base: x, Index: cols, Scale: 1}, of)
		d.codes, d.scales, d.biases, d.x, d.of = codes, scales, biases, x, of
		acc := g.zero()
		if bits := map[int]int{16: 7, 32: 8}[d.group]; bits > 0 { // eight groups
			SHRQ(U8(bits), cols)
		}
		TESTQ(cols, cols)
		JZ(LabelRef(f.Name + "_done"))
		loop(f.Name+"_groups", cols, func() { d.eight(acc) })
		Label(f.Name + "_done")
		y := GP64()
		MOVQ(at, y)
		SHLQ(U8(5), y)
		VMOVUPS(acc, Mem{Base: a, Index: y, Scale: 1, Disp: blockY})
		INCQ(at)
	})
	end()
}

// eight adds the totals of eight groups.
func (d *blockDot) eight(acc reg.VecVirtual) {
	dot := d.sums(func(at int) reg.VecVirtual { return d.pairs(at) })
	s, sum := YMM(), YMM()
	if d.group == 16 {
		VMOVSLDUP(Mem{Base: d.of}, s)
		if d.biased {
			sum = d.sums(func(at int) reg.VecVirtual {
				y := d.keep(d.bytes(1))
				VPMADDUBSW(Mem{Base: d.x, Disp: at}, y, y)
				return y
			})
			VCVTDQ2PS(sum, sum)
			VMULPS(s, sum, sum)
		}
	} else {
		low, high := YMM(), YMM()
		VMOVUPS(Mem{Base: d.of}, low)
		VMOVUPS(Mem{Base: d.of, Disp: 32}, high)
		VSHUFPS(U8(0x88), high, low, s)
		VPERMPD(U8(0xd8), s, s)
		if d.biased {
			VSHUFPS(U8(0xdd), high, low, sum)
			VPERMPD(U8(0xd8), sum, sum)
		}
	}
	VCVTDQ2PS(dot, dot)
	VMULPS(Mem{Base: d.scales}, s, s)
	VMULPS(s, dot, dot)
	if d.biased {
		VMULPS(Mem{Base: d.biases}, sum, sum)
		VADDPS(sum, dot, dot)
		ADDQ(U32(32), d.biases)
	}
	VADDPS(dot, acc, acc)
	inputs := 8 * d.group
	ADDQ(U32(32), d.scales)
	ADDQ(U32(uint32(inputs)), d.codes)
	ADDQ(U32(uint32(inputs)), d.x)
	ADDQ(U32(uint32(inputs/4)), d.of)
}

// pairs returns the products of 32 inputs from at on, two of them added in 16 bits. Codes of formats
// with biases have no sign. The others have one, of which the inputs are relieved: a code of -128
// times inputs of up to 127, twice, is below 2^15.
func (d *blockDot) pairs(at int) reg.VecVirtual {
	q, y := YMM(), YMM()
	VMOVDQU(Mem{Base: d.codes, Disp: at}, q)
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

// sums returns the totals of eight groups, each of which pairs has in 16 bits, 32 inputs at a time.
func (d *blockDot) sums(pairs func(at int) reg.VecVirtual) reg.VecVirtual {
	four := func(first int) reg.VecVirtual { // of four times 32 inputs: their first halves, then their second
		two := func(first int) reg.VecVirtual {
			a, b := pairs(first), pairs(first+32)
			VPMADDWD(d.ones, a, a)
			VPMADDWD(d.ones, b, b)
			VPHADDD(b, a, a)
			return a
		}
		a, b := two(first), two(first+64)
		VPHADDD(b, a, a)
		return a
	}
	low := four(0)
	if d.group == 16 {
		order := d.keep(d.generator.table("halvesInTurn", 8, func(i int) Constant { return U32(uint32(i%2*4 + i/2)) }))
		VPERMD(low, order, low)
		return low
	}
	high, first := four(128), YMM()
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
