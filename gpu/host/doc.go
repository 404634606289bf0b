// Package host is the device every machine has: the operations of package gpu in portable Go, on worker threads
// of its own. It owns its memory outside the Go heap, its queues and its threads.
//
// Arithmetic is float32 with a stated order. In a matrix product inputs are summed in blocks (a quantisation group,
// or 64 elements), within a block in four lanes: lane j takes the inputs i ≡ j mod 4 in ascending order, and the
// lanes end as (l0+l2)+(l1+l3); blocks are added in ascending order. Every other sum says its order where it is
// computed. Products are rounded before they are added, on every processor, so that two loops over the same numbers
// give the same bits. No result depends on the number of threads, of rows, or on which rows travel together.
//
// Exponentials go through float64 and are rounded once.
package host
