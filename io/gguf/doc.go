// Package gguf reads GGUF files, versions 2 and 3: metadata under keys, and named tensors in blocks
// of many types, in one file or in parts. A file is mapped read-only. Every claim of its header is
// checked against the bytes that are there before anything is allocated for it, so what a file that
// lies can cost is bounded by its size. Files in big-endian order, and tensors of types that other
// projects have to themselves, are refused.
//
// Views of a mapping are valid until Close. If another process truncates a mapped file, reads of
// the lost part fault; internal/mapfault turns that into an error.
package gguf
