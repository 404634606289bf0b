// Package schedule decides whose rows are computed next: which requests the next step takes, with
// how many rows, for whom a step waits a moment, and, where sequences that decode and prompts are
// in the pipeline together, whose layers go first. It knows requests by the few questions of
// Request, and is a plain value with methods: it takes no message, and of time it knows what it is
// told (Now). The sequencer owns one; what a step is made of, and what becomes of it, is the
// sequencer's.
//
// # Steps of two kinds
//
// A decode step has one row of each sequence that waits for its next token; a prompt step has
// pieces of chunks. They never mix: a row that travels with a prompt arrives when the whole prompt
// step does. Each kind always has a lane.
//
// Sequences that decode travel together: there is one decode step at a time, and before it is
// formed those are waited for that decoded a moment ago, as long as that saves more than it takes
// (company). Where several steps may be in the pipeline, steps of their own are tried now and then
// (apart). Where several devices compute a step one after the other, they are in as many steps of
// one size from the start (places), and are waited for longer.
//
// How long a decode step takes is measured. While somebody decodes, the next token is due some time
// after the one before: with a share of two thirds (Config.Share), three times as long after it as
// if nobody else were there.
//
// # A device that preempts
//
// Where the device runs decode steps amid prompt steps (Config.Preempts), a decode step is formed
// as soon as somebody wants a token. When it is computed, prompts have the device until the token
// is due, and then it is handed over (Holds). So a token that takes long, which nobody can know
// before it is computed, takes the time from the prompt and not from its reader. Prompt steps have
// as many rows as if nobody decoded, and the layer under way goes on where it was stopped. So the
// time of a layer plays no part, and prompts lose little but the time of the decode steps. Where
// decode steps take long beside prompts one after the other, as experts are streamed for both,
// prompts still get a quarter of their time after each of them.
//
// # Turns
//
// Elsewhere the two kinds take turns layer by layer. How long a layer of a prompt step takes is
// measured too, by its rows (curve). A layer of a prompt begins as long as the decode step that
// follows will still end in time; then the decode step goes, and no layer of a prompt begins until
// all of it is submitted. So prompts get what decoding leaves of that time. The rows of a prompt
// step are chosen so that whole layers fill it, but not so few that the prompt would be read at
// less than half its speed. At least one layer of a prompt begins between two decode steps, so
// nobody waits for ever.
//
// Nobody who decodes is waited for longer than a moment, and a prompt that is alone has the whole
// pipeline.
//
// # Whose prompts
//
// The rows of prompt steps are shared by keys (Request.Key), whoever has how many prompts: a step
// is filled with the prompts of the key that would be done first if all were served at once, by
// their weights (divide). What a key had is counted by package fair. Within a key prompts take
// turns of a step.
package schedule
