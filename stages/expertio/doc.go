// Package expertio is the stage that has experts in memory when they are needed. It owns the slots:
// which expert each holds, its generation, who uses it, and the memory of every slot that is not in
// use. It looks for the uses of a plan in the slots, asks for reads of those it does not find, and
// keeps the experts that stages/expertio/policy expects to be used soonest. When the ring has a
// credit, it sends the experts that have arrived to dispatch, in waves.
//
// Plans take their slots in the order in which they arrived, each only after all plans before it
// have theirs; but those of urgent steps, which decode, overtake the others. What has arrived can
// always be sent without the rest, so a pool of any size makes progress. Waves of different steps
// may be sent in any order, and so may the experts of one plan. The last wave of a plan says that
// it is the last.
//
// Experts may be computed by hosts, too: other processes that are asked for the outputs of experts
// that are not in memory here. Their answers come as reads do, and go to dispatch in the waves.
//
// There are three kinds of reads: on demand; ahead of demand, for hints; and, while the disk has
// nothing else to do, for a warm start from the counts of earlier runs. The number of slots may
// change while the engine runs. If all experts are mapped or loaded, every expert has a slot of its
// own from the start, and every pick is a hit. If a device with memory of its own reads some of
// them in the host's, the stage chooses those that have a slot there as well.
//
//	core.go      messages; reads that end
//	loads.go     a plan on its way to dispatch: finding and taking slots, asking for reads
//	slots.go     the pool
//	send.go      waves
//	prefetch.go  hints; pace.go and pause.go decide which are worth a read
//	urgent.go    what urgent steps have before others
//	away.go      experts that other machines compute
//	saved.go     when they are worth asking
//	unread.go    asking them for what cannot be read here
//	table.go     which machine owns which
//	late.go      reads that fail or do not end
//	resize.go    another number of slots
//	forget.go    emptying the slots
//	warm.go      a warm start
//	near.go      which experts a device has in its own memory, where all lie in the host's
//
// Package actors/expertmem does the reads (reads.go) and says where a slot lies (slots.go). To add
// a message, add a case to Core.Step; package stages has the other steps.
package expertio
