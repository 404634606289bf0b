// Package darwincheck type-checks Go packages for macOS on any machine, including files with cgo.
// It needs no SDK and no C compiler for macOS. go list says which files macOS would build, go/types
// checks them from the leaves up, and cgo, run with the machine's own C compiler on headers that
// need nothing from macOS, says what C's names are. go vet for darwin cannot do this: without cgo
// it skips such files and reports success.
//
// It runs the part of go vet that works with syntax and types alone, and one rule of its own:
// nothing may call the methods of darwinkit that panic because they pass a struct to
// objc.WrapAsProtocol.
package darwincheck
