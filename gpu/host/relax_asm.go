//go:build (amd64 || arm64) && !noasm

package host

// relax tells the processor that this thread looks for something that another one writes: it lets
// the other thread of the core run, and saves power. It takes 10 to 50 ns.
func relax()

// fetch asks for cache lines, at least one, to come to the second cache. It does not wait for them,
// and it does nothing where there is no memory.
func fetch(at uintptr, lines int)
