//go:build !amd64 || noasm

package host

// vectorsOf returns the primitives of a variant of available.
func vectorsOf(string) *vectors { return &portableVectors }
