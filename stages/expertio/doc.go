// Package expertio is the stage that brings experts into memory. It owns the slots: which expert
// each holds, its generation, who uses it, and the memory of every slot that no wave uses. It looks
// up the experts of each plan in its slots and asks for reads of the others. When the ring has a
// credit, it sends what has arrived to dispatch, as a wave. It keeps the experts that
// stages/expertio/policy expects to be used soonest.
//
// Plans get slots in the order in which they arrived. What has arrived can always be sent without
// the rest, so a pool of any size makes progress. Waves of different steps are sent in any order,
// and so are the experts of one plan; the last wave of a plan says that it is the last.
//
// A read is made on demand; or ahead of demand, for a prediction; or, while the disk has nothing
// else to do, for a warm start from the counts of earlier runs. The number of slots can change
// while the engine runs.
//
// If all experts are mapped, each has a slot of its own from the start, and every pick is a hit.
package expertio
