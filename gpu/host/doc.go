// Package host is the device that every machine has: it runs the operations of package gpu in Go,
// on worker threads of its own. Inner loops also exist in assembly, for instruction sets that the
// processor may have: see Config.Variant. The package owns its memory outside the Go heap, its
// queues and its threads.
//
// Arithmetic is float32 in a stated order that the variant fixes: no result depends on the number
// of threads or rows, or on which rows travel together.
//
// # Matrices of codes
//
// Kernels take panels, see quant.Format.ToPanels. Each lane of a vector is an output row, so
// nothing is summed across lanes. Matrices in row order are rearranged panel by panel and go
// through the same kernels, so both layouts give the same bits.
//
// With float32 inputs each weight is code·scale + bias. AVX-512 and AVX2 keep four sums of a group,
// one for the inputs of each place modulo 4, each in ascending order; they add them to the row's
// total one after the other, groups in ascending order. NEON keeps one sum of a group's inputs, in
// ascending order. These variants fuse products with sums, and code·scale with the bias. The
// portable variant sums a group in lanes as below.
//
// With inputs of 8 bits (Config.Activations) a group gives the total
//
//	float32(Σ code·q)·(scale·s) + bias·(s·Σq)
//
// The sums of integers are exact, and every product and sum of float32 is rounded by itself, groups
// in ascending order, so all variants give the same bits. s is the group's largest magnitude
// divided by 127, and q is the input divided by s, rounded to the nearest integer, ties to even. A
// group with an input that is not finite makes the results NaN. A group whose inputs are all below
// 127·2^-126 counts as zeros.
//
// The variant avxvnni is AVX2 but for these products: it has AVX-VNNI's products of bytes for codes
// of 2, 4 and 8 bits with scales of bf16, and for MXFP4.
//
// Codes of MXFP4 stand for a float each, which a table holds; there is no bias. With inputs of 8
// bits they are whole numbers of halves above -6, so that code is the number of halves, scale is
// scale/2 and bias is -6·scale above. Those of NVFP4 are the same; each output is multiplied by its
// row's factor in the end. Codes of FP8 are floats, too, but no whole numbers of anything: inputs
// stay float32 whatever Config.Activations says. Of these NEON has kernels for MXFP4 alone, and
// none for codes with float32 scales: it runs the portable ones.
//
// # Matrices of blocks
//
// Blocks of GGUF files lie in rows, see quant.Block. With float32 inputs a row is widened, each
// number rounded once, and multiplied as a row of float32 is below.
//
// With inputs of 8 bits, rounded in groups as long as a block, a row is taken apart into codes of 8
// bits and what groups of them share. A block of 32 gives
//
//	float32(Σ code·q)·(scale·s) + bias·(s·Σq)
//
// as above, in lane b mod 8 for block b. A lane adds blocks in ascending order, and the lanes are
// added as ((l0+l4)+(l2+l6))+((l1+l5)+(l3+l7)). A block of 256 has whole numbers as scales of its
// groups, and minima, so that all of it is two sums of integers:
//
//	float32(Σ code·q·scale)·(d·s) - float32(Σ minimum·Σq)·(dmin·s)
//
// see blockArgs. Blocks are added in ascending order. All variants give the same bits. The AVX-512
// variant has functions of its own for stripes of 16 rows of W and for one row, and those of AVX2
// for the rest; NEON has the portable ones.
//
// # Other matrices
//
// Products with bf16 and float32 take float32 inputs. The portable variant sums inputs in blocks of
// 64 elements, and within a block in four lanes: lane j takes the inputs i ≡ j mod 4 in ascending
// order, and the lanes are added as (l0+l2)+(l1+l3). Blocks are added in ascending order. The other
// variants have four vectors of 8 or 16 lanes, NEON eight of 4, which take vectors of inputs in
// turn and fuse products with sums. They sum inputs after the last full block of 64 as the portable
// variant does.
//
// The order of every other sum is stated where it is computed; type vectors has the primitives.
// Attention takes positions in blocks of 64 and spans of 256, counted from position 0, so that a
// row's bits depend on its position alone. With inputs and keys of 8 bits queries have 8 bits, too,
// and scores are sums of whole numbers, see portableDotCodes. Go code rounds products before it
// adds them, on every processor, so that two loops over the same numbers give the same bits.
//
// The portable variant computes exponentials in float64 and rounds them once. The others compute
// e^x to 2 units in the last place and σ(x) to 4, including subnormal results. NaN stays NaN, and
// infinities give what the definition gives.
package host
