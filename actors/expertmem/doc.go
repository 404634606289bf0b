// Package expertmem is the memory of an engine's experts: how much there is, where it lies, and how
// an expert's bytes come into it. Package actors is its only user; the shells of actors/runtime
// call it as runtime.Experts.
//
// Which expert is in which slot is decided by the core of expert-IO, and which record lies in the
// host's memory before a device's by the core of stages/tier. This package has the bytes.
//
// Look here at night if reads are slow, fail or do not end, if memory runs short, or if the number
// of slots is not what it should be:
//
//	memory.go    Memory, and the order in which everything opens and ends
//	plan.go      at Open: mapped or read, how many slots, how large a wave
//	number.go    who may ask for another number of slots, and how that is done
//	governor.go  watches the machine's memory and asks for fewer slots
//	slots.go     where a slot lies; load.go fills those of a device that holds all experts
//	reads.go     one read under way into each slot, on io/readpool
//	verify.go    compares what was read with checksums
//	near.go      slots in a device's own memory, where the host's has all experts
//	staged.go    slots in a device's own memory, where the host's has a part of the experts
//	uploads.go   the copies to both
//	tier.go      the shell of stages/tier: the host's memory between the disk and such a device
//	stats.go     the figures of reads and memory, and reads that do not end
package expertmem
