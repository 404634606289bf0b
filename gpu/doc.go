// Package gpu is what the pipeline sees of a device that computes: memory (Device, Buffer, View),
// work (the operations, collected in a Commands) and time (Queue, Ticket).
//
// A device is asynchronous. Submit hands a Commands to the queue and returns a Ticket at once; the
// operations of one queue run in the order of submission and each sees what the earlier ones wrote.
// (A queue may run urgent Commands before others; each of the two kinds keeps its order.) The
// ticket completes later, from a goroutine of the device. Several devices may be one (Split).
//
// Operations are plain structs that name views of buffers and carry their sizes. Each has a file,
// and kind.go lists them. An operation's comment is its definition. Small host data (token ids, row
// lists, routing weights) travel inside the operation: whoever encodes it leaves the slice alone
// until the ticket is done, so no block of device memory has to be written by the host while
// commands are in flight.
//
// Activations are float32, row-major, outermost dimension first. Weights are a Matrix: elements or
// codes with scales and perhaps biases, each a view of its own, or blocks that hold all of it.
//
// Results do not depend on how the work is split among threads, nor on which rows are computed
// together: row r of an operation's output depends on row r of its inputs alone (and, where the
// operation has a state, on the rows of the same sequence before it), always by the same arithmetic
// in the same order. Between devices a tolerance holds; gputest states it.
package gpu
