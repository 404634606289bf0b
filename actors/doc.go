// Package actors runs the stages: one actor each, on protoactor-go, and the Engine and Sequence
// that callers use.
//
// An engine is embedded by Open, which makes an actor system of its own, or by Spawn, which uses
// the host service's. Both give plain Go methods. To send messages instead, send those of package
// stages to the sequencer's PID, which is Engine.PID, with a PID as Caller or as a request.
//
// A shell is all that an actor is: it hands each message to its stage's core and performs the
// outbox. It never blocks. Reads run in io/readpool, kernels on the device's own threads; both come
// back as messages. Flow is bounded by credits that the cores keep, never by the capacity of a
// mailbox.
//
// A panic in a stage, or an error of a core, is a bug of ours: the supervisor stops all five
// actors, every caller gets a *BrokenError, and nothing restarts with half a state.
package actors
