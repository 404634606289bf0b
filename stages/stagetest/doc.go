// Package stagetest runs the five stages in one goroutine, under any order of delivery. A Sim holds
// what actors, read pool and device hold for real: messages under way, reads that have not ended,
// commands that have not run. Its random source picks what happens next, so a seed is an order; the
// only order it keeps is the one that is promised, from one sender to one receiver. It watches the
// pipeline's invariants and fails with the event that broke one. With a TierConfig, reads go
// through a tier.Core, whose memory, reads from the disk and uploads are simulated and watched like
// the rest.
//
// Sim.Log reports every message. The logs of a decoded token that package stages points to, in
// testdata, are made that way.
//
// RunScripts runs one stage alone by text files: messages in, what the stage answers out.
package stagetest
