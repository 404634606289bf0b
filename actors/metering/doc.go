// Package metering counts where the time of an engine goes: the device at work, the disk at work,
// both at once, and nobody at work because a step waits for experts (stages.Times, for each layer).
//
// Look here at night if the times of a token do not add up, or if a figure of Stats.Times or of a
// trace looks wrong. Whether work is slow is not decided here: the meter only books the time that
// passes between two notes. Its notes come from two places: the shells of package actors/runtime
// tell it before and after a stage handles a message (Before, After), and the device's queue, once
// it is wrapped (Measured), when a submission begins and ends.
package metering
