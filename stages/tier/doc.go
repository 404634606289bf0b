// Package tier is the cache of experts' records in the host's memory, between the disk and the
// slots of a device with memory of its own. It knows which record holds which expert, who uses it,
// and which one makes room. Like a stage, its [Core] is a pure state machine: Step takes one
// [Event] and writes into [Effects] what must happen next. It is not an actor. Reads and uploads
// end in goroutines of their own, and what follows must not wait for another one to wake up, so
// the shell lets the Core take events wherever they occur, one at a time.
//
// A read is named by the slot that it fills: a slot has at most one. A read whose record is here is
// uploaded at once. If another read is bringing the record, it follows that one and is uploaded
// with it. Any other read needs a record to fill: a free one, or the least recently used of those
// that nobody uses (recency.go). If there is none it waits, higher ranks (stages.Rank) first. A
// read ends when it is uploaded, or when it fails.
//
// Records lie in blocks of pinned memory. Pinning takes some ten milliseconds, so the Core asks for
// the next block while half a block is still free, up to a limit. When the limit falls, blocks
// leave: their records take no other expert, and when the last use has ended the block is freed.
// The first block always stays. One [Order] for memory is under way at a time.
//
// The shell owns memory, device queue, reads and the goroutine that pins. Package actors/expertmem
// has it; stages/stagetest simulates it.
package tier
