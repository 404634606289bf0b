// Package safetensors reads and writes the safetensors format: eight bytes of header length, a JSON
// header that names each tensor with its element type, shape and span, then the data. A file is
// mapped read-only and every claim of its header is checked before a tensor is handed out. A
// checkpoint directory is one file or several with an index.
//
// Views into a mapping are good until Close. A file that another process cuts short while it is
// mapped makes reads of the lost part fault; debug.SetPanicOnFault turns that into a panic that can
// be recovered.
package safetensors
