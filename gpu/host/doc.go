// Package host is the device every machine has: the operations of package gpu in Go, on worker threads of
// its own; the inner loops of matrix products are also there in assembly, see Config.Variant. It owns its memory outside the Go heap, its queues and its threads.
//
// Arithmetic is float32 with a stated order. In a matrix product the portable variant sums inputs in blocks (a quantisation group,
// or 64 elements): within a block in four lanes: lane j takes the inputs i ≡ j mod 4 in ascending order, and the
// lanes end as (l0+l2)+(l1+l3); blocks are added in ascending order. The others
// have as many lanes as a vector (8 or 16), and fuse: within a group two vectors of lanes take vectors of inputs in turn and are
// added; that, times the scale, is added to the row's lanes, and biases times sums of inputs to four more; all are added up
// at the row's end. Without groups four vectors of lanes take vectors of inputs in turn, and what is left after blocks of 64
// inputs is summed as in the portable variant. Every other sum says its order where it is
// computed. Outside the assembly products are rounded before they are added, on every processor, so that two loops over the same numbers
// give the same bits. No result depends on the number of threads, of rows, or on which rows travel together.
//
// Exponentials go through float64 and are rounded once.
package host
