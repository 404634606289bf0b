package gpu

// What Rounding names.
const (
	ActivationsF32  = "f32"  // float32
	ActivationsInt8 = "int8" // rounded to 8 bits where MatMul and Attention allow it, and in Experts
)

// Rounding is a Device that says how it holds the inputs of products with quantised matrices. Any
// other holds float32.
type Rounding interface {
	Device
	// Activations is ActivationsF32 or ActivationsInt8.
	Activations() string
}

// Processor is a Device that is the processor itself.
type Processor interface {
	Rounding
	// Threads returns how many threads compute at once now.
	Threads() int
	// Kernels names the kernels' variant: of two processors with the same one, results are equal.
	Kernels() string
}
