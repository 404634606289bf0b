// Package recorder writes the records of a running engine to files: all of them, to one file, as
// they are made; and those around something slow, to a file of its own in a folder, as a flight
// recorder does.
//
// It reads the engine's log (package record) from goroutines of its own, which the engine never
// waits for. A disk that is full, slow or hung costs records and nothing else: what is lost is
// counted, and is said once.
package recorder
