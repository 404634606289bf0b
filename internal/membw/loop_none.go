//go:build noasm || (!amd64 && !arm64)

package membw

// loops returns the loops that this processor runs.
func loops() []loop { return portable() }
