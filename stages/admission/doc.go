// Package admission decides who is next when memory for states is short. It is a queue of asks and
// the accounts of those who ask; it knows neither what is asked for nor how much there is of it.
// The sequencer tells it who asks, what was promised to whom, and how many tokens were evaluated,
// and takes the head of the queue when memory allows.
//
// Its nouns:
//
//   - ask: a wish that waits. Asks of a higher class go first, always.
//   - share: the account of one key (a tenant, say) in one class, and its weight. Within a class
//     asks that let a text go on (Grow) go first, then those of the key that has had least for its
//     weight.
//   - served, promised: tokens that were evaluated for a share, and those that it has memory for
//     and that are still to come. What a key has had is the sum of both: so a key that gets several
//     places at once pays for them at once, and gets back what it did not use.
//
// What keys had is counted by package fair, on a clock for each class.
//
// The queue is bounded. Where it is full, an ask of the lowest class and of the key with the
// longest line for its weight is turned away, perhaps not the newest one: so one key cannot fill
// the queue to keep others out. Asks of texts that have memory already are neither counted nor
// turned away.
//
// Nothing here has a clock of its own, a goroutine or a lock, and nothing depends on the order of a
// map.
package admission
