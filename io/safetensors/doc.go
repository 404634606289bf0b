// Package safetensors reads and writes the safetensors format: eight bytes of header length, a JSON
// header that gives each tensor's name, element type, shape and byte range, then the data. A file
// is mapped read-only, and every claim of its header is checked before a tensor is returned. A
// checkpoint directory has one file, or several with an index. A file that has yet to arrive can be
// described from its header and mapped later.
//
// Views of a mapping are valid until Close. If another process truncates a mapped file, reads of
// the lost part fault; debug.SetPanicOnFault turns that into a panic that can be recovered.
package safetensors
