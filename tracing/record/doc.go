// Package record is what an engine notes of its own work, always: fixed-size records of what each
// stage did, what it waited for, what was read, and what the device computed.
//
// A record has a type of its own for each kind of fact, and each field has one meaning. The stages
// write records as they handle a message, and the meter those of the device. Writing copies a
// struct into memory that the log has had since it was made: no lock, no allocation, no clock but
// the one that the shell reads anyway.
//
// A [Log] keeps the last records of each type, and forgets the oldest. Whoever reads it does so
// from another goroutine, with a [Cursor], never holds up a writer, and is told how many records it
// missed. A [Recording] is records at rest: what a log held at a moment, or what a file has. Spans,
// timelines, tables and replays are functions of a Recording.
//
// Times are nanoseconds on the engine's monotonic clock, counted from [Meta].Epoch; 0 is "never" or
// "unknown". Layers count from 0; the head is layer [Meta].Layers. Steps, requests and hints are
// numbered from 1, and 0 is none.
package record
