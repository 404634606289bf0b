// Package darwincheck type-checks Go packages for macOS on any machine, files with cgo included. It
// needs no SDK and no C compiler for macOS: go list with the other system's build constraints says
// which files there are, go/types checks them from the leaves up, and cgo, run with the machine's
// own C compiler on headers that need nothing of macOS, says what C's names are. go vet for darwin
// cannot do this: without cgo it leaves such files out and reports success.
//
// It runs the part of go vet that works with syntax and types alone, and one rule of its own:
// methods of darwinkit that panic when they are called, because they pass a struct to
// objc.WrapAsProtocol, must not be called.
package darwincheck
