// Package tune looks for settings with which a model runs faster on this machine.
//
// A [Tuner] records a text with the defaults and has tracing/whatif replay it with other settings:
// that proposes some. Settings of which a replay knows nothing are proposed as they are. Then it
// measures: all proposals and the defaults once or a few times, which chooses one, and that one in
// pairs with the defaults. It is chosen only if a signed-rank test of these pairs, which had no
// part in choosing it, finds it faster, and if it made the same tokens in every run.
//
// All of that takes no longer than it may. What is tuned is in package tuned; settings that change
// results, and memory, which is for the user to give, are not.
package tune
