// Package split makes one device of several (gpu.Split), each of which computes some layers of a
// model: its Device is what an engine is given, its queue what the engine's work goes through.
//
// A queue hands Commands to the queue of the part that they name and is not asked which layers that
// are. Between parts there are only moves: the rows of a step, where it passes from one part to the
// next. Where the receiving queue reaches the other part's memory (gpu.Receiver), it is told to
// wait for the other queue and to copy, and the host goes on at once. Elsewhere the queue has the
// one part download, into host memory, and holds back what the other part is given, until that is
// done and can be uploaded.
//
// Each part's tickets are done in the order of Submit, and none before those of the part before
// that were submitted when its moves were: so whoever waits for the end of a step knows that all of
// it is done, and steps that are with different parts do not wait for each other. A part that fails
// fails the tickets of its own work: a step that passes through that part fails, as it does where
// the only device does.
package split
