// Package schedule decides which rows the next step takes: who is ready, for whom a step is held
// back for a moment, and how a step's room is divided. It knows requests by the few questions of
// Request, and is a plain value with methods: it takes no message and reads no clock. The sequencer
// owns one; what a step is made of, and what becomes of it, is the sequencer's.
package schedule
