package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// Offsets of package host's panelArgs. A test there compares them with the struct.
const (
	argW          = 0
	argWStep      = 8
	argScales     = 16
	argBiases     = 24
	argSStep      = 32
	argCols       = 40
	argGroup      = 48
	argGroupBytes = 56
	argYStep      = 64
	argX          = 80
	argY          = 128
	argFarMask    = 176
	argFarShift   = 184
	argFarAhead   = 192
	argFarStep    = 200
)

// aheadBytes is how far ahead of their use codes are prefetched, aheadScales the same for scales
// and biases. A single row uses codes faster than that can supply them. They are prefetched into
// the second-level cache as well: for a row held as int8 where package host's farCodes says, for
// one of float32 with AVX-512 farBytes ahead. With AVX-512 the first-level cache gets them only
// nearBytes ahead.
const (
	aheadBytes  = 4096
	aheadScales = 512
	farBytes    = 8192
	nearBytes   = 2048
)

// peak writes a loop of integer products only, which benchmarks take as the processor's peak.
func (g *generator) peak(f base.Func) {
	x, sums := g.zero(), g.vecs(24)
	for _, s := range sums {
		g.clear(s)
	}
	loop(f.Name+"_turn", pointer("turns"), func() {
		for _, s := range sums {
			VPDPBUSD(x, x, s)
		}
	})
	end()
}

// product is the function being written. It computes a tile: vectors of outputs times n rows of X.
type product struct {
	*generator
	name    string
	coding  quant.Coding
	bits, n int
	vectors int // of outputs: two panels, the single one of a single row, or the halves of one
	a       reg.Register

	w, wStep              reg.Register
	scales, biases, sStep reg.Register
	x                     []reg.Register
	at, groupEnd          reg.Register // inputs
	scaleAt               reg.Register // of an int8 row's scales, in bytes from its beginning
	far, farStep          reg.Register // what to prefetch far ahead, and its step
	table, mask           reg.VecVirtual
	scale, bias           []reg.VecVirtual
	total                 [][]reg.VecVirtual // by vector and row; nil: in Y
}

func (g *generator) product(f base.Func) {
	p := &product{generator: g, name: f.Name, coding: f.Coding, bits: f.Coding.Bits(), n: f.Rows, vectors: 2}
	if g.wide() && f.Rows == 1 {
		p.vectors = 1
	}
	p.begin(f.Int8)
	if f.Int8 {
		p.int8s()
	} else {
		p.floats()
	}
}

func (p *product) field(offset int) reg.Register {
	r := GP64()
	MOVQ(Mem{Base: p.a, Disp: offset}, r)
	return r
}

// begin loads the arguments and clears the totals.
func (p *product) begin(int8s bool) {
	p.a = pointer("a")
	p.w, p.scales = p.field(argW), p.field(argScales)
	if p.coding.BiasBytes() > 0 {
		p.biases = p.field(argBiases)
	}
	if p.panelsApart() {
		p.wStep, p.sStep = p.field(argWStep), p.field(argSStep)
	}
	for r := range p.n {
		p.x = append(p.x, p.field(argX+8*r))
	}
	p.at, p.groupEnd = GP64(), GP64()
	XORQ(p.at, p.at)
	if int8s {
		p.scaleAt = p.field(argCols)
	}
	if p.wide() {
		p.total = make([][]reg.VecVirtual, p.vectors)
		for v := range p.total {
			for range p.n {
				p.total[v] = append(p.total[v], p.zero())
			}
		}
		return
	}
	zero, y := p.zero(), GP64()
	for r := range p.n {
		MOVQ(Mem{Base: p.a, Disp: argY + 8*r}, y)
		for v := range p.vectors {
			VMOVUPS(zero, Mem{Base: y, Disp: 32 * v})
		}
	}
}

// panelsApart reports whether the vectors belong to different panels.
func (p *product) panelsApart() bool { return p.wide() && p.vectors == 2 }

// codes returns the address of vector v of the chunk that follows chunk chunks later.
func (p *product) codes(v, chunk int) Mem { return p.part(p.w, p.wStep, v, 64*chunk, 32) }

func (p *product) part(base, step reg.Register, v, disp, half int) Mem {
	m := Mem{Base: base, Disp: disp}
	switch {
	case v == 0:
	case p.panelsApart():
		m.Index, m.Scale = step, 1
	default:
		m.Disp += half
	}
	return m
}

// perWord returns how many inputs a chunk has.
func (p *product) perWord() int { return 32 / p.bits }

// widened returns vector v of a group's scales or biases as float32.
func (p *product) widened(base reg.Register, v int) reg.VecVirtual {
	s, m := p.vec(), p.part(base, p.sStep, v, 0, 8*p.coding.ScaleBytes())
	switch p.coding.ScaleBytes() {
	case 4:
		VMOVUPS(m, s)
		return s
	case 2: // bf16
		VPMOVZXWD(m, s)
		VPSLLD(U8(16), s, s)
		return s
	}
	VPMOVZXBD(m, s)
	if p.coding.Factor() { // e4m3
		p.float8(s)
		return s
	}
	// E8M0: the exponent's bits, or 2^-127, which is not a normal number
	VPSLLD(U8(23), s, s)
	VPMAXUD(p.same("least", leastE8M0), s, s)
	return s
}

// The bits of a float e4m3 within a float32 that is 2^120 times smaller: then numbers without a
// leading 1 are such numbers, too, and the product with 2^120 is exact.
const (
	e4m3Bits  = 0x87f00000
	e4m3Power = (127 + 120) << 23
)

// float8 sets the lanes of v, whose codes e4m3 have no sign and nothing above them, to their
// values.
func (g *generator) float8(v reg.VecVirtual) {
	VPSLLD(U8(20), v, v)
	VMULPS(g.same("power", e4m3Power), v, v)
}

// leastE8M0 are the bits of 2^-127 as float32.
const leastE8M0 = 1 << 22

// loadScales loads scales and biases. For products of integers they are those of whole steps.
func (p *product) loadScales(int8s bool) {
	p.scale, p.bias = nil, nil
	biased := p.coding.BiasBytes() > 0
	PREFETCHT0(Mem{Base: p.scales, Disp: aheadScales})
	if biased {
		PREFETCHT0(Mem{Base: p.biases, Disp: aheadScales})
	}
	for v := range p.vectors {
		scale := p.widened(p.scales, v)
		p.scale = append(p.scale, scale)
		if biased {
			p.bias = append(p.bias, p.widened(p.biases, v))
		} else if int8s {
			step, least := p.coding.Steps()
			bias := p.vec()
			VMULPS(p.same("float", math.Float32bits(least)), scale, bias)
			VMULPS(p.same("float", math.Float32bits(step)), scale, scale)
			p.bias = append(p.bias, bias)
		}
	}
}

// addTo adds a sum to the total of vector v and row r.
func (p *product) addTo(v, r int, sum reg.VecVirtual) {
	if p.total != nil {
		VADDPS(sum, p.total[v][r], p.total[v][r])
		return
	}
	y := GP64()
	MOVQ(Mem{Base: p.a, Disp: argY + 8*r}, y)
	m := Mem{Base: y, Disp: 32 * v}
	VADDPS(m, sum, sum)
	VMOVUPS(sum, m)
}

// groups repeats body for each group of inputs and stores the totals.
func (p *product) groups(body func()) {
	Label(p.name + "_group")
	MOVQ(p.at, p.groupEnd)
	ADDQ(Mem{Base: p.a, Disp: argGroup}, p.groupEnd)
	body()
	ADDQ(U32(uint32(16*p.coding.ScaleBytes())), p.scales)
	if n := p.coding.BiasBytes(); n > 0 {
		ADDQ(U32(uint32(16*n)), p.biases)
	}
	CMPQ(p.at, Mem{Base: p.a, Disp: argCols})
	JB(LabelRef(p.name + "_group"))
	if p.total != nil {
		step := p.field(argYStep)
		for r := range p.n {
			y := p.field(argY + 8*r)
			for v := range p.vectors {
				VMOVUPS(p.total[v][r], p.part(y, step, v, 0, 0))
			}
		}
	}
	end()
}

// chunks repeats body for the chunks of a group, unroll of them in each iteration.
func (p *product) chunks(label string, unroll int, body func(chunk int)) {
	Label(p.name + label)
	for c := range unroll {
		body(c)
	}
	if p.far != nil {
		ADDQ(p.farStep, p.far)
	}
	ADDQ(U32(uint32(64*unroll)), p.w)
	ADDQ(U32(uint32(p.perWord()*unroll)), p.at)
	CMPQ(p.at, p.groupEnd)
	JB(LabelRef(p.name + label))
}

// ahead prefetches codes. Where two panels go together, it prefetches the same part of the next
// pair's first panel, and the second panel as a stream.
func (p *product) ahead(chunk int) {
	m := p.codes(p.vectors-1, chunk)
	if !p.panelsApart() {
		m = p.codes(0, chunk)
	} else {
		PREFETCHT0(Mem{Base: p.w, Index: p.wStep, Scale: 2, Disp: 64 * chunk})
	}
	near, single := aheadBytes, p.n == 1 && p.wide()
	if single {
		near = nearBytes
	}
	PREFETCHT0(m.Offset(near))
	if p.far != nil {
		PREFETCHT1(Mem{Base: p.far, Disp: 64 * chunk})
	} else if single {
		PREFETCHT1(m.Offset(farBytes))
	}
}

// aimFar sets what a group prefetches far ahead, see package host's farCodes.
func (p *product) aimFar() {
	within := GP64()
	MOVQ(p.w, p.far)
	MOVQ(p.w, within)
	ANDQ(Mem{Base: p.a, Disp: argFarMask}, within)
	SUBQ(within, p.far)
	SHRXQ(p.field(argFarShift), within, within)
	ADDQ(within, p.far)
	ADDQ(Mem{Base: p.a, Disp: argFarAhead}, p.far)
}

// int8s is the product with rows of int8.
func (p *product) int8s() {
	split := 1 // sums of a vector and row: enough for the latency of the products
	if p.wide() {
		split = max(1, 4/p.n)
		p.mask = p.keep(p.maskOf(p.bits))
		if !p.coding.Itself() {
			p.table = p.keep(p.wholes())
		}
	} else if p.isa.Dots {
		split = max(1, 4/p.n)
	}
	if p.n == 1 {
		p.far, p.farStep = GP64(), p.field(argFarStep)
	}
	p.groups(func() {
		if p.far != nil {
			p.aimFar()
		}
		sums := make([][][]reg.VecVirtual, p.vectors)
		for v := range sums {
			for range p.n {
				var s []reg.VecVirtual
				for range split {
					s = append(s, p.zero())
				}
				sums[v] = append(sums[v], s)
			}
		}
		turn, unroll := 0, 1
		if p.n <= 2 {
			unroll = 2
		}
		p.chunks("_chunk", unroll, func(chunk int) {
			p.ahead(chunk)
			if p.wide() || p.isa.Dots {
				p.dots(chunk, &turn, sums)
			} else {
				p.dots2(chunk, sums)
			}
		})
		p.loadScales(true)
		for r := range p.n {
			for v := range p.vectors {
				p.scaled(r, v, sums[v][r])
			}
		}
		ADDQ(U32(8), p.scaleAt)
	})
}

func (p *product) maskOf(bits int) Mem {
	if bits == 8 {
		bits = 4 // AVX2 takes bytes in two
	}
	return p.same("mask", 0x01010101*uint32(1<<bits-1))
}

// dots adds the products of a chunk. Constants are in registers if there are enough of them.
func (p *product) dots(chunk int, turn *int, sums [][][]reg.VecVirtual) {
	var mask Op = p.maskOf(p.bits)
	if p.mask != nil {
		mask = p.mask
	}
	raw, codes := p.vecs(p.vectors), p.vecs(p.vectors)
	for v := range raw {
		p.loadInts(p.codes(v, chunk), raw[v])
	}
	for k := range 8 / p.bits {
		table := p.table
		if table == nil && !p.coding.Itself() {
			table = p.keep(p.wholes())
		}
		for v := range raw {
			switch {
			case p.bits == 8:
				codes[v] = raw[v]
			case k == 0:
				p.and(mask, raw[v], codes[v])
			default:
				VPSRLW(U8(k*p.bits), raw[v], codes[v])
				p.and(mask, codes[v], codes[v])
			}
			if table != nil {
				VPSHUFB(codes[v], table, codes[v])
			}
		}
		for r := range p.n {
			m := Mem{Base: p.x[r], Index: p.at, Scale: 1, Disp: chunk*p.perWord() + 4*k}
			if p.vectors == 1 {
				VPDPBUSD_BCST(m, codes[0], sums[0][r][*turn%len(sums[0][r])])
				continue
			}
			x := p.vec()
			VPBROADCASTD(m, x)
			for v := range codes {
				VPDPBUSD(x, codes[v], sums[v][r][*turn%len(sums[v][r])])
			}
		}
		*turn++
	}
}

// dots2 is dots for AVX2, through sums of 16 bits. Those of 2- and 4-bit codes fit, being at
// most 15·127·2·2; 8-bit codes are split in two.
func (p *product) dots2(chunk int, sums [][][]reg.VecVirtual) {
	ones, sixteens, mask := p.same("pair", 0x00010001), p.same("pair", 0x00100010), p.maskOf(p.bits)
	parts, width := 8/p.bits, p.bits
	if p.bits == 8 {
		parts, width = 2, 4
	}
	for v := range p.vectors {
		raw, codes := p.vec(), p.vecs(parts)
		VMOVUPS(p.codes(v, chunk), raw)
		for k := range codes {
			if k == 0 {
				VPAND(mask, raw, codes[k])
				continue
			}
			VPSRLW(U8(k*width), raw, codes[k])
			VPAND(mask, codes[k], codes[k])
		}
		if !p.coding.Itself() {
			table := p.keep(p.wholes())
			for _, c := range codes {
				VPSHUFB(c, table, c)
			}
		}
		for r := range p.n {
			x, sum, next := p.vec(), p.vec(), p.vec()
			for k := range codes {
				if k == 0 || p.bits != 8 {
					VPBROADCASTD(Mem{Base: p.x[r], Index: p.at, Scale: 1, Disp: chunk*p.perWord() + 4*k}, x)
				}
				if k == 0 {
					VPMADDUBSW(x, codes[k], sum)
					continue
				}
				VPMADDUBSW(x, codes[k], next)
				if p.bits == 8 {
					VPMADDWD(sixteens, next, next)
					VPADDD(next, sums[v][r][0], sums[v][r][0])
				} else {
					VPADDW(next, sum, sum)
				}
			}
			VPMADDWD(ones, sum, sum)
			VPADDD(sum, sums[v][r][0], sums[v][r][0])
		}
	}
}

// scaled adds a group's dot·(scale·s) + bias·S, each step rounded.
func (p *product) scaled(r, v int, sums []reg.VecVirtual) {
	for i := 1; i < len(sums); i++ {
		VPADDD(sums[i], sums[0], sums[0])
	}
	dot, t, u := sums[0], p.vec(), p.vec()
	VCVTDQ2PS(dot, dot)
	s := Mem{Base: p.x[r], Index: p.scaleAt, Scale: 1}
	sum := s
	sum.Disp = 4
	if p.wide() {
		VMULPS_BCST(s, p.scale[v], t)
		VMULPS_BCST(sum, p.bias[v], u)
	} else {
		VBROADCASTSS(s, t)
		VMULPS(t, p.scale[v], t)
		VBROADCASTSS(sum, u)
		VMULPS(u, p.bias[v], u)
	}
	VMULPS(t, dot, dot)
	VADDPS(u, dot, dot)
	p.addTo(v, r, dot)
}

// floats is the product with rows of float32. A group has four sums, one for the inputs of each
// place modulo 4, which are one byte of each word. As many of them are computed at once as there
// are registers for.
func (p *product) floats() {
	together := 1
	switch {
	case p.n == 1:
		together = 4
	case p.n == 2 || p.n == 3 && p.wide():
		together = 2
	}
	if !p.wide() && p.n == 1 {
		together = 2
	}
	if p.wide() {
		switch {
		case !p.coding.Stepped():
		case p.bits == 8:
			p.mask = p.keep(p.same("code", 255))
		default:
			p.table = p.keep(p.table16())
		}
	}
	p.groups(func() {
		p.loadScales(false)
		for first := 0; first < 4; first += together {
			p.residues(first, together)
		}
	})
}

// wholes are a byte for each code of 4 bits, how many steps it is, once for every 16 bytes.
func (p *product) wholes() Mem {
	return p.generator.table("wholes"+p.coding.Suffix(), p.isa.Lanes, func(i int) Constant {
		word := uint32(0)
		for j := range 4 {
			word |= uint32(p.coding.Whole(i%4*4+j)) << (8 * j)
		}
		return U32(word)
	})
}

// table16 holds the float32 values of codes. A look-up takes the low four bits; those above the
// code belong to others.
func (p *product) table16() Mem {
	name := fmt.Sprintf("values%d", p.bits)
	if !p.coding.Itself() {
		name = "values" + p.coding.Suffix()
	}
	return p.generator.table(name, 16, func(i int) Constant { return F32(p.coding.Value(i % (1 << p.bits))) })
}

// residues adds up a group's inputs at the places first to first+together-1 modulo 4.
func (p *product) residues(first, together int) {
	sums := make([][][]reg.VecVirtual, together)
	for j := range sums {
		for range p.vectors {
			var s []reg.VecVirtual
			for range p.n {
				s = append(s, p.zero())
			}
			sums[j] = append(sums[j], s)
		}
	}
	p.chunks(fmt.Sprintf("_residue%d", first), 1, func(chunk int) {
		if first == 0 {
			p.ahead(chunk)
		}
		for k := range 8 / p.bits {
			for j := range sums {
				place := 4*k + first + j
				weights := p.vecs(p.vectors)
				for v := range weights {
					p.weight(v, chunk, 8*(first+j)+k*p.bits, weights[v])
				}
				for r := range p.n {
					m := Mem{Base: p.x[r], Index: p.at, Scale: 4, Disp: 4 * (chunk*p.perWord() + place)}
					if p.wide() && p.vectors == 1 {
						VFMADD231PS_BCST(m, weights[0], sums[j][0][r])
						continue
					}
					x := p.vec()
					VBROADCASTSS(m, x)
					for v := range weights {
						VFMADD231PS(x, weights[v], sums[j][v][r])
					}
				}
			}
		}
	})
	for j := range sums {
		for v := range p.vectors {
			for r := range p.n {
				p.addTo(v, r, sums[j][v][r])
			}
		}
	}
	if first+together < 4 { // back to the group's beginning
		SUBQ(Mem{Base: p.a, Disp: argGroupBytes}, p.w)
		SUBQ(Mem{Base: p.a, Disp: argGroup}, p.at)
	}
}

// weight sets dst to code·scale + bias for the codes that begin at bit shift.
func (p *product) weight(v, chunk, shift int, dst reg.VecVirtual) {
	from := p.codes(v, chunk)
	if !p.coding.Stepped() { // e4m3, whose sign moves to the top, and the rest behind the exponent
		p.lowByte(from, shift, dst)
		VMULPS(p.scale[v], dst, dst)
		return
	}
	switch {
	case shift == 0:
		VMOVUPS(from, dst)
	case p.wide():
		VPSRLD(U8(shift), from, dst)
	default:
		VMOVUPS(from, dst)
		VPSRLD(U8(shift), dst, dst)
	}
	switch {
	case p.table != nil:
		VPERMPS(p.table, dst, dst)
	case !p.coding.Itself():
		p.signed(p.coding, dst)
	default:
		if shift+p.bits < 32 {
			if p.wide() {
				VPANDD(p.mask, dst, dst)
			} else {
				VPAND(p.same("code", 1<<p.bits-1), dst, dst)
			}
		}
		VCVTDQ2PS(dst, dst)
	}
	if p.bias == nil {
		VMULPS(p.scale[v], dst, dst)
		return
	}
	VFMADD213PS(p.bias[v], p.scale[v], dst)
}

// lowByte sets dst to the values of the codes e4m3 that begin at bit shift of words.
func (p *product) lowByte(from Mem, shift int, dst reg.VecVirtual) {
	switch {
	case shift == 24:
		VMOVUPS(from, dst)
	case p.wide():
		VPSLLD(U8(24-shift), from, dst)
	default:
		VMOVUPS(from, dst)
		VPSLLD(U8(24-shift), dst, dst)
	}
	VPSRAD(U8(4), dst, dst)
	p.and(p.same("float8", e4m3Bits), dst, dst)
	VMULPS(p.same("power", e4m3Power), dst, dst)
}

// signed sets the 8 lanes of v, whose lowest 4 bits are a code, to what the codes stand for:
// magnitudes of the lowest 3 bits in a table, and a sign. Bits above belong to others.
func (g *generator) signed(c quant.Coding, v reg.VecVirtual) {
	table, sign := YMM(), YMM()
	VMOVUPS(g.table("magnitudes"+c.Suffix(), 8, func(i int) Constant { return F32(c.Value(i)) }), table)
	VPSLLD(U8(28), v, sign)
	VPERMPS(table, v, v)
	VPAND(g.table("signs", 8, func(int) Constant { return U32(1 << 31) }), sign, sign)
	VPXOR(sign, v, v)
}
