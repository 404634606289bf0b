// Package metal runs the kernels of package shaders on a Mac's GPU: it is a back end of package
// gpu/launch, which turns operations into launches. It needs macOS 15 on a Mac with Apple silicon,
// and a program that was built with cgo.
//
// The nouns: the system is Metal as this package sees it, which is darwinkit for what happens once
// and the C of encode.c for what happens all the time; the backend is one GPU; a memory is pages of
// the host's that the GPU has too; a stream is a command queue; a batch is one command buffer of
// it.
//
// A Commit is one call of C: it goes through the table of the batch's launches, encodes them, and
// commits. When the command buffer is done a handler writes the batch's number to a pipe, on whose
// other end the stream's goroutine waits: no thread of Go's is kept waiting in C, and no thread of
// Metal's runs Go.
//
// Metal tracks no hazards of this memory, since kernels reach most of it by addresses that stand in
// tables. Launches of a command buffer have barriers between them, command buffers of a stream a
// fence; a residency set has the pieces of memory that are not released.
//
// Everything but the file system_darwin.go runs in tests on Linux, encode.c included, against an
// Objective-C runtime made for that (testdata), which records what it is sent and has the emulator
// run the launches.
package metal
