// Package sequencer is the stage that begins and ends steps. It owns the length, tokens and health
// of every sequence, forms steps out of the rows of all sequences that are ready, runs the layer
// loop under the ring's credits, and answers callers. What a layer does it leaves to the other
// stages.
//
// A step that fails is drained: a DrainStep follows everything that was sent on its behalf through
// the pipeline, and only when it has come round are callers answered, sequences marked as poisoned
// and the step's credits given back. What is some sequences' fault alone fails no step: it goes on
// to its end for the others, and those are poisoned then. A step that fails for no sequence's
// fault, and can be taken back, is tried again, each sequence by itself.
//
// It keeps the books of states: who holds which page of keys and values (pages.go), which frozen
// states there are, as checkpoints (checkpoints.go), remembered for texts that begin alike
// (resume.go), or being read and filled by callers (exchange.go), and takes sequences back to them
// (rewind.go). Where states lie, and every copy, is dispatch's affair (states.go).
package sequencer
