// Package modelfiles opens a model by its path, whatever is there: a packed directory, or a GGUF
// file, which is computed with in place.
package modelfiles
