// Package quant implements the storage formats of weight matrices as pure functions. Numbers are
// float32 or bf16, or codes in groups along the input axis, which share a scale and perhaps a bias.
// Codes lie least significant first in little-endian 32-bit words, so with 4 bits byte k of a row
// holds elements 2k (low) and 2k+1 (high). What a format is, is said once: in the table of codings.
// Files, checks, kernels and their generators read it there. Formats of GGUF files, whose blocks
// have codes and scales together, are each a Block, of which there is a coding.
package quant
