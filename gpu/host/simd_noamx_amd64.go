//go:build !amx && amd64 && !noasm

package host

// matrixUnit returns nothing: kernels for AMX are right but no faster than AVX-512 in prompts (see
// docs/experiments.md), so only a build with the tag amx has them.
func matrixUnit() []*kernels { return nil }
