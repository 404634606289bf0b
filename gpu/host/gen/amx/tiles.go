package main

import "fmt"

// Offsets of package host's tileArgs. A test there compares them with the struct.
const (
	argConfig = 8 * iota
	argW
	argScales
	argBiases
	argScalesEnd
	argX
	argEnd
	argScalesX
	argXStride
	argRows
	argGroup
	argStep
	argStepW
	argSums
	argY
	argYOffset
	argAhead
	argAheadEnd
)

const rows = 16 // of X at most, and of W

// tiles writes the product of a panel with rows of X. Tiles 0 and 1 have the sums of a group by
// turns, a row for each row of X, tile 2 rows of X, tile 3 codes of W. A group's sums go through
// memory to vectors, which scale them and add them to the totals in Z16 to Z31. They are stored
// while the group before is scaled, and the group after them is multiplied meanwhile: a vector that
// was stored by tiles cannot be loaded before the store has left the core's buffers.
func (a *assembly) tiles() {
	a.text("tilesAMX", "(a *byte)", 8, "multiplies a panel by up to 16 rows of X held as int8. a points to a tileArgs.")
	a.ins("MOVQ a+0(FP), DI")
	a.field(argConfig, ax)
	a.raw(loadConfig(ax))
	for _, f := range []struct {
		offset int
		r      reg
	}{{argW, bx}, {argScales, cx}, {argBiases, dx}, {argX, si}, {argScalesX, r8}, {argXStride, r12}, {argSums, r14}} {
		a.field(f.offset, f.r)
	}
	a.ins("LEAQ (R12)(R12*2), R13")
	a.ins("LEAQ (R8)(R12*4), R9")
	a.ins("LEAQ (R9)(R12*4), R10")
	a.ins("LEAQ (R10)(R12*4), R11")
	a.ins("MOVQ $64, R15")
	for r := range rows {
		a.ins("VPXORD %[1]s, %[1]s, %[1]s", total(r))
	}
	a.multiply(0, "first")
	a.store(0)
	a.ins("CMPQ SI, %d(DI)", argEnd)
	a.ins("JAE even")
	a.multiply(1, "second")
	for i, name := range []string{"even", "odd"} {
		this, other := tile(i), tile(1-i)
		a.label(name)
		a.store(other)
		a.ins("CMPQ SI, %d(DI)", argEnd)
		a.ins("JAE %sScale", name)
		a.multiply(this, name+"Step")
		a.label(name + "Scale")
		a.scale(this, name+"Scaled")
		a.ins("CMPQ CX, %d(DI)", argScalesEnd)
		if this == 0 {
			a.ins("JAE write")
		}
	}
	a.ins("JB even")
	a.label("write")
	a.field(argRows, ax)
	a.field(argY, bx)
	a.field(argYOffset, cx)
	for r := range rows {
		a.ins("MOVQ %d(BX), DX", 8*r)
		a.ins("VMOVUPS %s, (DX)(CX*1)", total(r))
		a.upTo(r, "end")
	}
	a.label("end")
	a.raw(release())
	a.ins("VZEROUPPER")
	a.ins("RET")
}

func (a *assembly) field(offset int, r reg) { a.ins("MOVQ %d(DI), %v", offset, r) }

func total(r int) string { return fmt.Sprintf("Z%d", 16+r) }

// upTo jumps to a label if row r is the last. AX has the number of rows.
func (a *assembly) upTo(r int, label string) {
	if r < rows-1 {
		a.ins("CMPQ AX, $%d", r+1)
		a.ins("JEQ %s", label)
	}
}

const (
	tileX = 2
	tileW = 3
	// aheadLines are the cache lines of the next panel's codes that a group fetches
	aheadLines = 4
)

// multiply sets a tile to a group's sums.
func (a *assembly) multiply(sums tile, label string) {
	a.raw(zero(sums))
	a.ins("MOVQ SI, AX")
	a.ins("ADDQ %d(DI), AX", argGroup)
	a.label(label)
	a.raw(load(tileX, si, r12))
	a.raw(load(tileW, bx, r15))
	a.raw(dot(sums, tileX, tileW))
	a.ins("ADDQ %d(DI), SI", argStep)
	a.ins("ADDQ %d(DI), BX", argStepW)
	a.ins("CMPQ SI, AX")
	a.ins("JB %s", label)
}

// sumsBytes is the size of a group's sums in memory, where each of the two tiles has a place.
const sumsBytes = 4 * rows * rows

func (a *assembly) store(sums tile) {
	a.ins("LEAQ %d(R14), AX", sumsBytes*int(sums))
	a.raw(store(sums, ax, r15))
}

// scale adds a group's dot·(scale·s) + bias·S to the totals, each step rounded, as the products of
// AVX-512 do. The sums are those of a tile.
func (a *assembly) scale(sums tile, label string) {
	a.ahead(label + "Ahead")
	for i, p := range []reg{cx, dx} {
		a.ins("PREFETCHT0 %d(%v)", aheadScales, p)
		a.ins("VPMOVZXWD (%v), Z%d", p, i)
		a.ins("VPSLLD $16, Z%[1]d, Z%[1]d", i)
		a.ins("ADDQ $%d, %v", 2*rows, p)
	}
	a.field(argRows, ax)
	bases := []reg{r8, r9, r10, r11}
	for r := range rows {
		at := fmt.Sprintf("(%v)%s", bases[r/4], []string{"", "(R12*1)", "(R12*2)", "(R13*1)"}[r%4])
		t, u, d := 2+r%2*3, 3+r%2*3, 4+r%2*3
		a.ins("VCVTDQ2PS %d(R14), Z%d", sumsBytes*int(sums)+64*r, d)
		a.ins("VMULPS.BCST 0%s, Z0, Z%d", at, t)
		a.ins("VMULPS.BCST 4%s, Z1, Z%d", at, u)
		a.ins("VMULPS Z%d, Z%d, Z%d", t, d, d)
		a.ins("VADDPS Z%d, Z%d, Z%d", u, d, d)
		a.ins("VADDPS %[1]s, Z%[2]d, %[1]s", total(r), d)
		a.upTo(r, label)
	}
	a.label(label)
	for _, b := range bases {
		a.ins("ADDQ $8, %v", b)
	}
}

// ahead fetches some of the next panel's codes, while there are any left, into the second cache:
// they are unpacked when this panel is done.
func (a *assembly) ahead(label string) {
	a.field(argAhead, ax)
	a.ins("CMPQ AX, %d(DI)", argAheadEnd)
	a.ins("JAE %s", label)
	for i := range aheadLines {
		a.ins("PREFETCHT1 %d(AX)", 64*i)
	}
	a.ins("ADDQ $%d, AX", 64*aheadLines)
	a.ins("MOVQ AX, %d(DI)", argAhead)
	a.label(label)
}
