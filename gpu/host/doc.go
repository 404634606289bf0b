// Package host is the device every machine has: the operations of package gpu in Go, on worker threads of its own.
// Inner loops are there in assembly too, for instruction sets that the processor may have: see
// Config.Variant. The package owns its memory outside the Go heap, its queues and its threads.
//
// Arithmetic is float32 with a stated order, which the variant fixes: no result depends on the number of threads, of
// rows, or on which rows travel together. In a matrix product the portable variant sums inputs in blocks (a
// quantisation group, or 64 elements), within a block in four lanes: lane j takes the inputs i ≡ j mod 4 in ascending
// order, and the lanes end as (l0+l2)+(l1+l3); blocks are added in ascending order.
//
// The other variants have 8 or 16 lanes, lane j taking the inputs i ≡ j modulo that, and fuse products with sums. In a group two
// vectors of lanes take vectors of inputs in turn; their sum, times the scale, is added to the row's lanes, and the
// biases times the sums of inputs go to four lanes more, all added up at the row's end. Without groups four vectors
// of lanes take vectors of inputs in turn; inputs after the last full block of 64 are summed as the portable variant does.
//
// Every other sum says its order where it is computed; table vectors has the primitives. Attention takes positions in blocks of 64 and
// spans of 1024 counted from position 0, so that a row's bits depend on its position alone. In Go products are rounded before they are
// added, on every processor, so that two loops over the same numbers give the same bits.
//
// Exponentials of the portable variant go through float64 and are rounded once. The others compute e^x to 2 units in the last
// place and σ(x) to 4, subnormal results included; NaN stays NaN, and infinities give what the definition gives.
package host
