// Package whatif predicts what other settings would have made of a recorded run. It drives the real
// stages (sequencer, router, expert-IO, combine) in simulated time: callers ask as they did, the
// device takes the times that were recorded, the disk answers as it did, and experts are picked as
// they were.
//
// What was recorded for the very same work is used as it is: the time of a layer's first half, of
// its experts, of its end. Work that the recording does not have, as a wave of another size, takes
// what a law says that is fitted to the recording. So the replay of the recorded settings is nearly
// the run itself, and how far it is off ([Prediction].Error) says how far to trust the rest.
//
// The simulator has one clock, a line of messages as the engine has (package actors/runtime), a
// device that works off its queue, and a disk that some workers read. It knows what a recording
// tells and no more: what cannot be known is named in [Prediction].Unknown, or refused with an
// [UnknownError].
package whatif
