// Package readpool reads experts in parallel. It has a fixed number of workers, an unbounded queue
// in which reads that somebody waits for go before speculative ones, and one callback for each
// group of reads. Speculation takes few workers at a time, because nothing can overtake a read that
// the disk has been asked for. A read that fails is tried once more. A read that does not end is
// reported while its memory stays with the pool.
//
// The package owns the order of reads and nothing else. The Source knows where the bytes are, the
// caller where they go. Faulty wraps a Source and makes chosen reads go wrong, for tests.
package readpool
