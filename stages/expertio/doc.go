// Package expertio is the stage that has experts in memory when they are wanted. It owns the slots: which expert each
// holds, its generation, who uses it, and the memory of every slot that is not in use. It matches plans against slots as
// sets, asks for reads, keeps the experts that stages/expertio/policy expects to be used soonest, and sends a wave on when all its experts are resident and the ring
// has a credit.
//
// A wave takes its slots in the order in which waves arrived, and a wave takes slots only when all before it have theirs; so
// a pool of one wave's size always makes progress. Waves of different steps may be sent in any order, those of one
// layer in theirs.
//
// If all experts are mapped, every expert has a slot of its own from the start and every pick is a hit.
package expertio
