package quant

import (
	"fmt"
	"slices"
)

// Block is a storage format as one value: rows are blocks of Len numbers in Size bytes, and a block
// holds everything that its numbers depend on. GGUF files store weights so. (A Format, in contrast,
// has codes, scales and biases in three places.) There is one Block of each name, so two formats
// are the same if the pointers are.
type Block struct {
	Name string // as in GGUF files
	Len  int    // numbers of a block
	Size int    // bytes of a block

	// unpack widens one block to dst [Len]; where Len is 1, any number of them.
	unpack func(dst []float32, src []byte)
}

// blocks lists the formats, from exact to coarse.
var blocks = []*Block{
	{"F32", 1, 4, unpackF32},
	{"BF16", 1, 2, unpackBF16},
	{"F16", 1, 2, unpackF16},
	{"Q8_0", 32, 34, unpackQ8x0},
	{"Q6_K", 256, 210, unpackQ6K},
	{"Q5_1", 32, 24, unpackQ5x1},
	{"Q5_0", 32, 22, unpackQ5x0},
	{"Q5_K", 256, 176, unpackQ5K},
	{"Q4_1", 32, 20, unpackQ4x1},
	{"Q4_0", 32, 18, unpackQ4x0},
	{"Q4_K", 256, 144, unpackQ4K},
	{"IQ4_NL", 32, 18, unpackIQ4NL},
	{"IQ4_XS", 256, 136, unpackIQ4XS},
	{"MXFP4", 32, 17, unpackMXFP4},
	{"Q3_K", 256, 110, unpackQ3K},
	{"Q2_K", 256, 84, unpackQ2K},
}

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

// Bytes returns the bytes of a [rows, cols] matrix.
func (b *Block) Bytes(rows, cols int) int { return rows * (cols / b.Len) * b.Size }

// Unpack widens whole blocks to dst: each number is what the format says, rounded once to float32,
// and where no two products are added it is exact. len(dst) is a multiple of Len, and src has
// Bytes(1, len(dst)). Scales that are no finite numbers give numbers that are none either.
func (b *Block) Unpack(dst []float32, src []byte) {
	if len(dst)%b.Len != 0 || len(src) != b.Bytes(1, len(dst)) {
		panic(fmt.Sprintf("quant: %d bytes of %s for %d numbers", len(src), b.Name, len(dst)))
	}
	if b.Len == 1 {
		b.unpack(dst, src)
		return
	}
	for ; len(dst) > 0; dst, src = dst[b.Len:], src[b.Size:] {
		b.unpack(dst[:b.Len:b.Len], src[:b.Size:b.Size])
	}
}
