//go:build (amd64 || arm64) && !noasm

package host

// relax tells the processor that this thread looks for something that another one writes: it lets
// the other thread of the core run, and saves power. It takes 10 to 50 ns.
func relax()
