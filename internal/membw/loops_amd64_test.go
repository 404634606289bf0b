//go:build amd64 && !noasm

package membw

import "golang.org/x/sys/cpu"

// allLoops returns every loop that this processor runs.
func allLoops() []loop {
	all := append(loops256(), portable()...)
	if cpu.X86.HasAVX512F {
		all = append(all, loops512()...)
	}
	return all
}
