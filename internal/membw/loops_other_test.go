//go:build noasm || !amd64

package membw

// allLoops returns every loop that this processor runs.
func allLoops() []loop { return loops() }
