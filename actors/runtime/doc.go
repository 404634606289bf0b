// Package runtime runs the stages of one engine as actors, on protoactor-go. Package actors is its
// only user; callers of an engine never see it.
//
// A Runtime is a supervisor and, below it, one shell for each stage. What it needs of an engine is
// small: the stages' cores, a meter (package actors/metering), whoever reads experts into memory
// (Experts), and a clock, which it keeps itself. Requests of callers go through Post, Request and
// Wait.
//
// Look here at night if an engine has stopped, hangs, or an answer does not come:
//
//	shell.go       handles one message: core, meter, record, and what the outbox asks for
//	line.go        whose goroutine runs the shells, and in which order
//	supervisor.go  what happens when a stage panics or is stopped from outside
//	calls.go       requests of callers: posting, waiting, giving up, late answers
//	outside.go     requests that are sent as messages, and messages that nobody takes
//	await.go       the device's tickets become messages
//	linger.go      the sequencer's timer for rows
//	stint.go       the sequencer's timer for memory
//	fate.go        whether requests are still taken, and why not
//	spans.go       the goroutine that makes spans of records
//
// Nothing here decides anything about tokens, experts or memory: that is the stages' business.
package runtime
