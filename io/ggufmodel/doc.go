// Package ggufmodel says what a GGUF file is in the terms of the engine: the configuration that its
// checkpoint had, which tensor of the model each of its tensors is, and what its metadata has of
// text. Converters of that format rename, join, split and re-order what a checkpoint holds; this
// package knows the names, and which orders remain to be undone. No number is changed here.
package ggufmodel
