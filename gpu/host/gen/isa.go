package main

import (
	"fmt"
	"log"
	"math"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
	"github.com/mmcloughlin/avo/x86"

	"github.com/moeflux/moeflux-actor/gpu/host/gen/base"
)

// generator writes the functions of one instruction set, AVX-512 or AVX2.
type generator struct {
	isa base.ISA
	// wideCodes means that functions for blocks take 64 codes at a time (blockswide.go). Lanes are
	// eight all the same.
	wideCodes bool

	data map[string]Mem
	kept map[string]reg.VecVirtual // constants in registers
}

func (g *generator) wide() bool { return g.isa.Lanes == 16 }

func (g *generator) vec() reg.VecVirtual {
	if g.wide() {
		return ZMM()
	}
	return YMM()
}

func (g *generator) vecs(n int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, n)
	for i := range v {
		v[i] = g.vec()
	}
	return v
}

// clear sets v to zero. avo does not know that VPXORD of a register with itself reads nothing, and
// would keep v alive before it.
func (g *generator) clear(v reg.VecVirtual) {
	if !g.wide() {
		VPXOR(v, v, v)
		return
	}
	i, err := x86.VPXORD(v, v, v)
	if err != nil {
		log.Fatalf("gen: %v", err)
	}
	i.CancellingInputs = true
	Instruction(i)
}

func (g *generator) zero() reg.VecVirtual {
	v := g.vec()
	g.clear(v)
	return v
}

// and sets dst to a AND b.
func (g *generator) and(a Op, b, dst reg.VecVirtual) {
	if g.wide() {
		VPANDD(a, b, dst)
	} else {
		VPAND(a, b, dst)
	}
}

func (g *generator) xor(a, b, dst reg.VecVirtual) {
	if g.wide() {
		VPXORD(a, b, dst)
	} else {
		VPXOR(a, b, dst)
	}
}

func (g *generator) load(from Op, v reg.VecVirtual) { VMOVUPS(from, v) }

func (g *generator) loadInts(from Op, v reg.VecVirtual) {
	if g.wide() {
		VMOVDQU32(from, v)
	} else {
		VMOVDQU(from, v)
	}
}

// table returns n 32-bit constants in memory. It makes each table once.
func (g *generator) table(name string, n int, f func(i int) Constant) Mem {
	if m, ok := g.data[name]; ok {
		return m
	}
	m := GLOBL(strings.ToLower(g.isa.Name)+name, RODATA|NOPTR)
	for i := 0; i < n; i += 2 { // two in a line of the file
		DATA(4*i, U64(bitsOf(f(i)))|U64(bitsOf(f(i+1)))<<32)
	}
	if g.data == nil {
		g.data = map[string]Mem{}
	}
	g.data[name] = m
	return m
}

// bitsOf returns the bits of a 32-bit constant.
func bitsOf(c Constant) uint32 {
	if f, ok := c.(F32); ok {
		return math.Float32bits(float32(f))
	}
	return uint32(c.(U32))
}

// same returns a vector of one 32-bit constant in memory.
func (g *generator) same(name string, value uint32) Mem {
	return g.table(fmt.Sprintf("%s%x", name, value), g.isa.Lanes, func(int) Constant { return U32(value) })
}

// keep returns a register that holds m.
func (g *generator) keep(m Mem) reg.VecVirtual {
	v := g.vec()
	g.load(m, v)
	return v
}

// write writes the functions of a family.
func (g *generator) write(family string) {
	writers := map[string]func(f base.Func){}
	for kind, write := range map[string]func(f base.Func){
		"product": g.product, "quantise": g.quantise, "arrange": g.arrange, "arrangeScales": g.arrangeScales, "dotPeak": g.peak,
		"unpack16": g.unpack, "plain": g.plain,
		"split": g.split, "widenCodes": g.widenCodes, "whole": g.whole, "oneWhole": g.oneWhole, "oneShort": g.oneShort, "apartShort": g.apartShort, "manyShort": g.manyShort, "arrangeShort": g.arrangeShort, "wholeDot": g.wholeDot, "oneCodes": g.oneCodes, "halves": g.halves, "fours": g.fours, "stripeShort": g.stripeShort, "stripeWhole": g.stripeWhole, "stripeBytes": g.stripeBytes, "arrangeWhole": g.arrangeWhole, "scaleCodes": g.scaleCodes, "arrangeStripe": g.arrangeStripe,
		"dot": g.dot, "norm": g.norm, "gatedNorm": g.gatedNorm, "add": g.add, "axpy": g.axpy, "merge": g.merge, "swiglu": g.swiglu,
		"gate": g.gate, "combine": g.combine, "conv": g.conv, "rope": g.rope, "ropePairs": g.ropePairs, "dequantise": g.dequantise,
		"widen8": g.widen8, "transpose8": g.transpose8, "transpose": g.transpose, "multiply": g.multiply,
		"multiplyAhead": g.multiplyAhead, "softmax": g.softmax, "delta": g.delta, "touch": g.touch, "dotCodes": g.dotCodes,
	} {
		writers[kind] = func(f base.Func) {
			TEXT(f.Name, NOSPLIT, "func"+f.Signature)
			Pragma("noescape")
			Doc(f.Name + " " + f.Doc)
			write(f)
		}
	}
	base.Write(g.isa, family, writers)
}

func pointer(name string) reg.Register { return Load(Param(name), GP64()) }

// loop repeats body n times, at least once; n ends at 0.
func loop(name string, n reg.Register, body func()) {
	Label(name)
	body()
	DECQ(n)
	JNZ(LabelRef(name))
}

// fieldsOf returns what loads a field of the struct at a.
func fieldsOf(a reg.Register) func(disp int) reg.GPVirtual {
	return func(disp int) reg.GPVirtual {
		r := GP64()
		MOVQ(Mem{Base: a, Disp: disp}, r)
		return r
	}
}

// twosAndOne runs rows for two rows of X at a time, and for the one that is left of an odd number.
func twosAndOne(name string, count func() reg.Register, rows func(name string, n int)) {
	twos := count()
	SHRQ(U8(1), twos)
	JZ(LabelRef(name + "_one"))
	loop(name+"_twos", twos, func() { rows(name+"_two", 2) })
	Label(name + "_one")
	TESTQ(U32(1), count())
	JZ(LabelRef(name + "_done"))
	rows(name+"_last", 1)
	Label(name + "_done")
}

// end returns from a function that used vector registers.
func end() {
	VZEROUPPER()
	RET()
}
