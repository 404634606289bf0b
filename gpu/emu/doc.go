// Package emu runs the kernels of package shaders on the processor, to check them: it writes them
// as C++ (gpu/msl), builds them with the machine's C++ compiler, loads the result, and runs every
// thread of a threadgroup as a fiber, in an order that the caller chooses. That finds missing
// barriers (orders give different results, or the NaNs that threadgroup memory starts with),
// barriers and simd functions that not all threads reach, threadgroup memory that nobody wrote, and
// accesses past the end of memory. It is slow.
//
// Backend is a launch.Backend; New makes a gpu.Device of it.
package emu
