// Package launch turns the operations of package gpu into launches of the kernels of package
// shaders, or of a back end's own (LimbBackend): what all back ends with kernels share. A back end
// (Backend, Stream) gives memory, compiles kernels and launches them in order; New makes a
// gpu.Device of it.
//
// The nouns: a Kernel is an entry point specialised by #define lines; a Pipeline is what a back end
// compiled of it; a Launch is a pipeline's run over a grid of threadgroups with arguments; a Stream
// runs launches and copies in order.
package launch
