// Package cuda runs the kernels of package shaders on an NVIDIA GPU: it is a back end of package
// gpu/launch, which turns operations into launches. For products with affine codes it has kernels
// of its own, in CUDA, in the folder override. It needs Linux, a driver (libcuda) and the run-time
// compiler of a CUDA toolkit (libnvrtc); both are opened when a device is opened, so a program that
// holds this package runs without either. There is no cgo.
//
// The nouns: driver and compiler are the two libraries' functions as tables; the backend is one
// GPU's primary context; a memory is a piece of its memory or of pinned host memory; a stream is a
// CUDA stream with the goroutine that waits for its work.
//
// The context belongs to OS threads: every entry makes it current on the thread it is on (bind),
// which costs less than a hop to a thread that has it. What a thread has current stays so, and does
// no harm.
//
// Errors of the driver are *Error. One that comes out of a kernel (an address that does not exist)
// spoils the context: all that is submitted afterwards fails with the first cause, until the device
// is closed.
package cuda
