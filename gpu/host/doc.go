// Package host is the device every machine has: the operations of package gpu in Go, on worker
// threads of its own. Inner loops are there in assembly too, for instruction sets that the
// processor may have: see Config.Variant. The package owns its memory outside the Go heap, its
// queues and its threads.
//
// Arithmetic is float32 with a stated order, which the variant fixes: no result depends on the
// number of threads, of rows, or on which rows travel together.
//
// # Affine matrices
//
// Kernels take panels, see quant.Format.ToPanels: a lane of a vector is an output row, so nothing
// is summed across lanes. Matrices in row order are rearranged panel by panel and go through the
// same kernels: both layouts give the same bits.
//
// With inputs of float32 each weight is code·scale + bias. In a group the inputs whose places are
// equal modulo 4 are summed apart, in ascending order; the four sums are added to the row's total
// one after the other, groups in ascending order. The vector variants fuse the products with the
// sums, and code·scale with the bias. NEON has one sum of a group's inputs, in ascending order, and
// the portable variant sums a group in lanes as below.
//
// With inputs of 8 bits (Config.Activations) a group gives the total
//
//	float32(Σ code·q)·(scale·s) + bias·(s·Σq)
//
// with the sums of whole numbers exact, and every product and sum of float32 rounded by itself,
// groups in ascending order: all variants give the same bits. s is the group's largest input
// through 127, and q the input through s to the nearest whole number, ties to even. A group with an
// input that is not finite makes the results NaN; one whose inputs all are below 127·2^-126 counts
// as zeros.
//
// # Other matrices
//
// Products with bf16 and float32 take inputs of float32. The portable variant sums inputs in blocks
// of 64 elements, within a block in four lanes: lane j takes the inputs i ≡ j mod 4 in ascending
// order, and the lanes end as (l0+l2)+(l1+l3); blocks are added in ascending order. The other
// variants have four vectors of 8 or 16 lanes, NEON eight of 4, that take vectors of inputs in turn
// and fuse products with sums; inputs after the last full block of 64 are summed as the portable
// variant does.
//
// Every other sum says its order where it is computed; table vectors has the primitives. Attention
// takes positions in blocks of 64 and spans of 1024 counted from position 0, so that a row's bits
// depend on its position alone. In Go products are rounded before they are added, on every
// processor, so that two loops over the same numbers give the same bits.
//
// Exponentials of the portable variant go through float64 and are rounded once. The others compute
// e^x to 2 units in the last place and σ(x) to 4, subnormal results included; NaN stays NaN, and
// infinities give what the definition gives.
package host
