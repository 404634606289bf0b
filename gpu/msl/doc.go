// Package msl reads the subset of the Metal Shading Language that the kernels of package shaders
// keep to, and writes it as Metal, as CUDA C++, as C++ for the emulator and for clang's check of
// address spaces. docs/gpu.md has the rules of the subset.
//
// It is a rewrite of tokens, not a compiler: kernels' parameters and threadgroup variables become
// what the target has instead, address spaces go where the target has none, and everything else is
// left to the target's compiler to judge, against a prelude that declares the part of Metal's
// library that kernels may use. Lines keep their file and number.
package msl
