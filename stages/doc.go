// Package stages is the vocabulary of the pipeline: Step and Batch, the messages that the five
// stages exchange, the RoutePlan, slots, the Outbox a stage fills, the errors a caller sees, and
// the figures a stage counts. It holds no logic beyond String and Error methods.
//
// A stage is a pure state machine in a package of its own (sequencer, router, expertio, dispatch,
// combine): Step takes one message and says in an Outbox what must now happen. It starts no
// goroutine, reads no clock, takes no lock and does no I/O. Package actors runs the stages for
// real, package stagetest in one goroutine under any order of delivery.
//
// A message is sent by pointer and never written after it is sent, until it has been handled
// (Spent). Send gives away: the sender forgets every slice in it, unless the field's comment says
// "shared, read-only". Between one sender and one receiver order holds; nothing else does, so a
// stage keys what it receives by step and layer.
package stages
