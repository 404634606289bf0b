// Package expertio is the stage that has experts in memory when they are wanted. It owns the slots:
// which expert each holds, its generation, who uses it, and the memory of every slot that is not in
// use. It matches plans against slots as sets, asks for reads, keeps the experts that
// stages/expertio/policy expects to be used soonest, and sends experts to dispatch in waves, of
// what has arrived, when the ring has a credit.
//
// A plan takes its slots in the order in which plans arrived, and only when all before it have
// theirs. What has arrived can always be sent without the rest, so a pool of any size makes
// progress. Waves of different steps are sent in any order, and so are the experts of one plan; the
// last wave of a plan says so.
//
// Reads are for demand; ahead of it, where experts are foretold; and, while the disk has nothing
// else to do, for a warm start from the counts of earlier runs. The number of slots can change
// while the engine runs.
//
// If all experts are mapped, every expert has a slot of its own from the start and every pick is a
// hit.
package expertio
