package gpu

// Processor is a Device that is the processor itself.
type Processor interface {
	Device
	// Threads returns how many threads compute at once now.
	Threads() int
	// Activations names how the device holds the inputs of products with quantised matrices: "f32",
	// or "int8" where it rounds them.
	Activations() string
	// Kernels names the kernels' variant: of two processors with the same one, results are equal.
	Kernels() string
}
