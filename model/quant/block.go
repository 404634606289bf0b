package quant

import (
	"cmp"
	"fmt"
	"slices"
)

// Block is a storage format as one value: rows are blocks of Len numbers in Size bytes, and a block
// holds everything that its numbers depend on. GGUF files store weights so. (Other Formats have
// codes, scales and biases in three places.) There is one Block of each name, so two formats are
// the same if the pointers are.
//
// Numbers of blocks longer than one are codes in groups: code·scale, or code·scale + bias where
// groups are Biased. Products of a code and a scale are float32 numbers, and so are scales and
// biases, whatever a block makes them of.
type Block struct {
	Name string // as in GGUF files
	Type uint32 // its number in GGUF files
	Len  int    // numbers of a block
	Size int    // bytes of a block

	Group  int  // numbers that share a scale; 0 where Len is 1
	Biased bool // groups have a bias, too
	// Least is what codes without a sign are above those of Split in blocks that are not Biased. Of
	// blocks of 256 Whole has such codes: Minima are Least·Scales then, and DMin is D. Of blocks of
	// 32 products may take them. It is 0 where codes keep their sign.
	Least int8
	Table *Table // of codes of 4 bits; nil: codes stand for themselves
	// Halves are the places of fp16 numbers in a block: what all scales are multiplied by, and what
	// all biases are.
	Halves []int
	// Power means that a block has a power of two in place of Halves, see splitShort.
	Power bool
	Bits  int // of a code in blocks of 32: 4, 5 or 8

	// whole takes a block of 256 apart but for D and DMin, see Whole; nil for others.
	whole func(codes []int8, w *Whole, src []byte)
	// widen widens any number of numbers; nil where Len is more.
	widen func(dst []float32, src []byte)
}

// Table is what codes of 4 bits stand for.
type Table struct {
	Name   string // of constants in generated code
	Values [16]int8
}

// blocks lists the formats, from exact to coarse.
var blocks = func() (all []*Block) {
	for i := range codings {
		if b := cmp.Or(codings[i].plain, codings[i].block); b != nil {
			all = append(all, b)
		}
	}
	return all
}()

// Whole is what a block of 256 numbers has beside its codes, which are 16 at a time code·Scales·D -
// Minima·DMin. Groups of 32 have two entries of one number. Codes have no sign where there are
// minima (see Block.Least); otherwise Minima and DMin are not set. The place of each field is known
// to kernels.
type Whole struct {
	Scales, Minima [16]int16
	D, DMin        float32
}

// The largest block, and the most groups of one.
const (
	maxBlock       = 256
	maxBlockGroups = maxBlock / 16
)

// Blocks returns all formats in blocks, from exact to coarse.
func Blocks() []*Block { return slices.Clone(blocks) }

// BlockNamed returns the format of a name as GGUF files have it, nil if there is none.
func BlockNamed(name string) *Block {
	for _, b := range blocks {
		if b.Name == name {
			return b
		}
	}
	return nil
}

// String returns the name.
func (b *Block) String() string { return b.Name }

// Validate reports rows of cols numbers that are not whole blocks.
func (b *Block) Validate(cols int) error {
	if cols <= 0 || cols%b.Len != 0 {
		return fmt.Errorf("quant: %d columns do not divide into blocks of %s, which have %d", cols, b.Name, b.Len)
	}
	return nil
}

// Signed reports whether the codes of Whole have a sign, and there are no minima.
func (b *Block) Signed() bool { return !b.Biased && b.Least == 0 }

// Unsigned returns what is added to what codes of 4 or 5 bits stand for so that it has no sign:
// Least, and 127 for a table whose values keep theirs in Split. It is 0 for Biased blocks.
func (b *Block) Unsigned() int8 {
	if b.Least == 0 && b.Table != nil {
		return -slices.Min(b.Table.Values[:])
	}
	return b.Least
}

// Bytes returns the bytes of a [rows, cols] matrix.
func (b *Block) Bytes(rows, cols int) int { return rows * (cols / b.Len) * b.Size }

// Split takes whole blocks of several numbers apart: codes, and of each group the scale and, if the
// format is Biased, the bias. len(codes) is a multiple of Len, scales and biases have an element
// for each Group of them, and src has Bytes(1, len(codes)).
func (b *Block) Split(codes []int8, scales, biases []float32, src []byte) {
	each := b.Len / b.Group
	if b.whole != nil {
		b.splitWhole(codes, scales, biases, src)
		return
	}
	for ; len(codes) > 0; codes, scales, src = codes[b.Len:], scales[each:], src[b.Size:] {
		b.splitShort(codes[:b.Len:b.Len], scales[:each:each], biases, src[:b.Size:b.Size])
		if b.Biased {
			biases = biases[each:]
		}
	}
}

// Whole is Split for blocks of 256, with scales and minima as a block has them. wholes has an
// element for each block.
func (b *Block) Whole(codes []int8, wholes []Whole, src []byte) {
	for i := range wholes {
		w, from := &wholes[i], src[i*b.Size:(i+1)*b.Size]
		b.whole(codes[i*b.Len:(i+1)*b.Len], w, from)
		w.D = half(from[b.Halves[0]:])
		switch {
		case b.Biased:
			w.DMin = half(from[b.Halves[1]:])
		case b.Least != 0:
			w.center(int16(b.Least))
		}
	}
}

// splitWhole is Split for blocks of 256.
func (b *Block) splitWhole(codes []int8, scales, biases []float32, src []byte) {
	var w [1]Whole
	for each := b.Len / b.Group; len(codes) > 0; codes, scales, src = codes[b.Len:], scales[each:], src[b.Size:] {
		b.Whole(codes[:b.Len], w[:], src)
		for i := range codes[:b.Len] {
			codes[i] -= b.Least
		}
		for g := range each {
			i := g * b.Group / 16
			scales[g] = w[0].D * float32(w[0].Scales[i])
			if b.Biased {
				biases[g] = -(w[0].DMin * float32(w[0].Minima[i]))
			}
		}
		if b.Biased {
			biases = biases[each:]
		}
	}
}

// Unpack widens whole blocks to dst: each number is what the format says, rounded once to float32,
// and where groups have no bias it is exact. len(dst) is a multiple of Len, and src has Bytes(1,
// len(dst)). Scales that are no finite numbers give numbers that are none either.
func (b *Block) Unpack(dst []float32, src []byte) {
	if len(dst)%b.Len != 0 || len(src) != b.Bytes(1, len(dst)) {
		panic(fmt.Sprintf("quant: %d bytes of %s for %d numbers", len(src), b.Name, len(dst)))
	}
	if b.Len == 1 {
		b.widen(dst, src)
		return
	}
	var codes [maxBlock]int8 // whole numbers: nothing is -0
	var scales, biases [maxBlockGroups]float32
	for ; len(dst) > 0; dst, src = dst[b.Len:], src[b.Size:] {
		b.Split(codes[:b.Len], scales[:], biases[:], src[:b.Size:b.Size])
		for i, c := range codes[:b.Len] {
			dst[i] = float32(c) * scales[i/b.Group] // exact
		}
		if b.Biased {
			for i := range dst[:b.Len] {
				dst[i] += biases[i/b.Group]
			}
		}
	}
}

// Exact reports whether Unpack rounds nothing: every number of the format is a float32. The sum of
// a product and a bias may need more than its 24 bits.
func (b *Block) Exact() bool { return !b.Biased }
