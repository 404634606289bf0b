// Package sequencer is the stage that begins and ends steps. It owns the length, tokens and health
// of every sequence, forms steps out of the rows that package schedule chooses among all sequences
// that are ready, runs the layer loop under the ring's credits, and answers callers. What happens
// within a layer is up to the other stages.
//
// A step that fails is drained: a DrainStep follows everything that was sent on its behalf through
// the pipeline. Only when it has come round are callers answered, sequences marked as poisoned and
// the step's credits given back. What is the fault of some sequences alone fails no step: the step
// goes on to its end for the others, and then those are poisoned. A step that fails through no
// sequence's fault, and can be taken back, is tried again, each sequence by itself.
//
// The books of states are those of package pages: who holds which page of keys and values, and
// which frozen states are kept, as checkpoints (checkpoints.go) or remembered for texts that begin
// alike (resume.go). States are found by their tokens in search.go, in the tree of package prefix.
// Callers read and fill them in exchange.go, and sequences go back to them in rewind.go. What lies
// with the parking store, or is on its way, is in parking.go. Where states lie, and every copy, is
// up to dispatch (states.go).
//
// A sequence's right to memory is its grant (grants.go). What goes beyond it asks (asks.go), and
// waits where there is no memory, in the order of package admission. Whose state is parked for
// others is decided in victims.go, and when at the earliest in stints.go.
//
// A chunk's way: chunks.go takes it and answers it, form.go puts its rows into a step, layers.go
// takes the step through the layers (flight.go has those on their way), results.go shares out what
// came of it, failure.go ends it otherwise.
//
// On a device of several parts (gpu.Split) the layers that begin together are of one part, each
// part has credits of its own, and of several steps the oldest goes first (flight.go).
//
// To add a message, add a case to Core.Step; package stages has the other steps.
package sequencer
