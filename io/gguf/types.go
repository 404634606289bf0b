package gguf

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/model/quant"
)

// Type is a type of tensors: how many of its numbers lie in a block of how many bytes.
type Type struct {
	ID         uint32 // as in files
	Name       string // as the format's own tools write it
	BlockLen   int    // numbers of a block; a row is whole blocks
	BlockBytes int
	// Format unpacks the type's weights; nil if that cannot be done.
	Format *quant.Block
}

// String returns the type's name.
func (t *Type) String() string { return t.Name }

// sized are types of which only the size is known: formats whose codes are points of tables that
// are not here, others that are rare, and whole numbers.
var sized = []Type{
	{ID: 16, Name: "IQ2_XXS", BlockLen: 256, BlockBytes: 66},
	{ID: 17, Name: "IQ2_XS", BlockLen: 256, BlockBytes: 74},
	{ID: 22, Name: "IQ2_S", BlockLen: 256, BlockBytes: 82},
	{ID: 18, Name: "IQ3_XXS", BlockLen: 256, BlockBytes: 98},
	{ID: 21, Name: "IQ3_S", BlockLen: 256, BlockBytes: 110},
	{ID: 19, Name: "IQ1_S", BlockLen: 256, BlockBytes: 50},
	{ID: 29, Name: "IQ1_M", BlockLen: 256, BlockBytes: 56},
	{ID: 34, Name: "TQ1_0", BlockLen: 256, BlockBytes: 54},
	{ID: 35, Name: "TQ2_0", BlockLen: 256, BlockBytes: 66},
	{ID: 40, Name: "NVFP4", BlockLen: 64, BlockBytes: 36},
	{ID: 41, Name: "Q1_0", BlockLen: 128, BlockBytes: 18},
	{ID: 9, Name: "Q8_1", BlockLen: 32, BlockBytes: 36},
	{ID: 15, Name: "Q8_K", BlockLen: 256, BlockBytes: 292},
	{ID: 24, Name: "I8", BlockLen: 1, BlockBytes: 1},
	{ID: 25, Name: "I16", BlockLen: 1, BlockBytes: 2},
	{ID: 26, Name: "I32", BlockLen: 1, BlockBytes: 4},
	{ID: 27, Name: "I64", BlockLen: 1, BlockBytes: 8},
	{ID: 28, Name: "F64", BlockLen: 1, BlockBytes: 8},
}

// types are all types by their numbers: those that are unpacked, which package quant knows, and
// sized.
var types = func() map[uint32]*Type {
	m := map[uint32]*Type{}
	for _, f := range quant.Blocks() {
		m[f.Type] = &Type{ID: f.Type, Name: f.Name, BlockLen: f.Len, BlockBytes: f.Size, Format: f}
	}
	for i := range sized {
		m[sized[i].ID] = &sized[i]
	}
	return m
}()

// ikTypes are types that only ik_llama.cpp has.
var ikTypes = map[uint32]string{
	133: "Q6_0", 134: "IQ1_BN", 135: "IQ2_BN", 137: "IQ2_K", 138: "IQ3_K", 139: "IQ4_K", 140: "IQ5_K", 141: "IQ6_K",
	144: "IQ4_KS", 145: "IQ2_KS", 146: "IQ4_KSS", 151: "Q8_KV", 152: "IQ5_KS", 153: "IQ2_KT", 154: "IQ3_KT",
	155: "IQ4_KT", 156: "IQ3_KS", 157: "IQ2_KL", 158: "IQ1_KT",
	202: "Q4_0_R8", 206: "Q5_0_R4", 208: "Q8_0_R8", 210: "Q2_K_R4", 211: "Q3_K_R4", 212: "Q4_K_R4", 213: "Q5_K_R4",
	214: "Q6_K_R4", 216: "IQ2_XXS_R4", 217: "IQ2_XS_R4", 218: "IQ3_XXS_R4", 219: "IQ1_S_R4", 220: "IQ4_NL_R4",
	221: "IQ3_S_R4", 222: "IQ2_S_R4", 223: "IQ4_XS_R8", 229: "IQ1_M_R4", 230: "BF16_R16", 233: "Q6_0_R4",
	335: "IQ2_BN_R4", 337: "IQ2_K_R4", 338: "IQ3_K_R4", 339: "IQ4_K_R4", 340: "IQ5_K_R4", 344: "IQ4_KS_R4",
	352: "IQ5_KS_R4", 398: "Q8_KV_R8", 399: "Q8_K_R8",
}

// unknownType says of a number that is not in types what is known of it.
func unknownType(id uint32) string {
	switch name, ik := ikTypes[id]; {
	case ik:
		return fmt.Sprintf("type %d is %s of ik_llama.cpp, which no other program reads; take a file of another type", id, name)
	case id == 4 || id == 5 || id >= 31 && id <= 33 || id >= 36 && id <= 38:
		return fmt.Sprintf("type %d has been given up by the format; take a newer file of the model", id)
	}
	return fmt.Sprintf("type %d is unknown: it is one of another project, or newer than this program", id)
}
