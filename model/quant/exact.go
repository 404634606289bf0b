package quant

// sums are the formats whose numbers are a product plus another: such a sum may need more than the
// 24 bits of a float32.
var sums = map[string]bool{"Q4_1": true, "Q5_1": true, "Q2_K": true, "Q4_K": true, "Q5_K": true}

// Exact reports whether Unpack rounds nothing: every number of the format is a float32.
func (b *Block) Exact() bool { return !sums[b.Name] }
