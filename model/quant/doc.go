// Package quant implements the storage formats of weight matrices as pure functions: float32, bf16,
// and affine codes of 2, 4 or 8 bits in groups along the input axis, with a bf16 scale and a bf16
// bias for each group: w = q·scale + bias. Codes lie least significant first in little-endian
// 32-bit words, so with 4 bits byte k of a row holds elements 2k (low) and 2k+1 (high). Scales may
// be negative. Formats of GGUF files, whose blocks have codes and scales together, are each a
// Block.
package quant
