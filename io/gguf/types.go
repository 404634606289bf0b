package gguf

import "fmt"

// Type is a type of tensors: how many of its numbers lie in a block of how many bytes.
type Type struct {
	ID         uint32 // as in files
	Name       string // as the format's own tools write it
	BlockLen   int    // numbers of a block; a row is whole blocks
	BlockBytes int
}

// String returns the type's name.
func (t *Type) String() string { return t.Name }

// types lists the types of the format. Numbers that are missing have been given up.
var types = []Type{
	{0, "F32", 1, 4}, {1, "F16", 1, 2}, {30, "BF16", 1, 2}, {28, "F64", 1, 8},
	{24, "I8", 1, 1}, {25, "I16", 1, 2}, {26, "I32", 1, 4}, {27, "I64", 1, 8},
	{2, "Q4_0", 32, 18}, {3, "Q4_1", 32, 20}, {6, "Q5_0", 32, 22}, {7, "Q5_1", 32, 24},
	{8, "Q8_0", 32, 34}, {9, "Q8_1", 32, 36},
	{10, "Q2_K", 256, 84}, {11, "Q3_K", 256, 110}, {12, "Q4_K", 256, 144}, {13, "Q5_K", 256, 176},
	{14, "Q6_K", 256, 210}, {15, "Q8_K", 256, 292},
	{16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74}, {22, "IQ2_S", 256, 82},
	{18, "IQ3_XXS", 256, 98}, {21, "IQ3_S", 256, 110},
	{19, "IQ1_S", 256, 50}, {29, "IQ1_M", 256, 56},
	{20, "IQ4_NL", 32, 18}, {23, "IQ4_XS", 256, 136},
	{34, "TQ1_0", 256, 54}, {35, "TQ2_0", 256, 66},
	{39, "MXFP4", 32, 17}, {40, "NVFP4", 64, 36}, {41, "Q1_0", 128, 18},
}

var typeByID = func() map[uint32]*Type {
	m := make(map[uint32]*Type, len(types))
	for i := range types {
		m[types[i].ID] = &types[i]
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

// unknownType says of a number that types lacks what is known of it.
func unknownType(id uint32) string {
	switch name, ik := ikTypes[id]; {
	case ik:
		return fmt.Sprintf("type %d is %s of ik_llama.cpp, which no other program reads; take a file of another type", id, name)
	case id == 4 || id == 5 || id >= 31 && id <= 33 || id >= 36 && id <= 38:
		return fmt.Sprintf("type %d has been given up by the format; take a newer file of the model", id)
	}
	return fmt.Sprintf("type %d is unknown: it is one of another project, or newer than this program", id)
}
