//go:build (!amd64 && !arm64) || noasm

package host

// available returns the variants that this build has.
func available() []*kernels { return []*kernels{&portable} }
