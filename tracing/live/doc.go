// Package live shows what an engine does at this moment: a bounded picture of its stages, its
// experts, its requests and its last tokens, several times a second, for whoever watches.
//
// All of it is read from the engine's records (package record), by the goroutine of whoever asks,
// and nothing is read or kept while nobody watches. messages.go has what is sent.
package live
