//go:build !amx && amd64 && !noasm

package host

// matrixUnit returns nothing: kernels for AMX have not run on a processor yet, so only a build with
// the tag amx has them.
func matrixUnit() []*kernels { return nil }
