// Package msl reads the subset of the Metal Shading Language in which the kernels of package
// shaders are written, and writes it as Metal, as CUDA C++, as C++ for the emulator, and as C++ for
// clang's check of address spaces. docs/gpu.md has the rules of the subset.
//
// It rewrites tokens; it is not a compiler. Kernel parameters and threadgroup variables become
// their counterparts in the target, and address spaces disappear where the target has none.
// Everything else is left to the target's compiler, with a prelude that declares the part of
// Metal's library that kernels may use. Lines keep their file and number.
package msl
