// Package readpool reads experts in parallel. It has a number of workers, an unbounded queue, and
// one callback for each group of reads. What waits goes by its Rank: reads of steps that decode
// come first, and of each kind those that somebody waits for. Speculation takes few workers at a
// time, because nothing can overtake a read that the disk has been asked for. Fewer workers read
// where the disk is faster then (Config.Fewer). A read that fails is tried once more. A read that
// does not end is reported while its memory stays with the pool.
//
// The package owns the order of reads and nothing else. The Source knows where the bytes are, the
// caller where they go. Faulty wraps a Source and makes chosen reads go wrong, for tests.
package readpool
