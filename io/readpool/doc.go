// Package readpool reads experts in parallel: a fixed number of workers, an unbounded queue in
// which reads that somebody waits for go before reads made on a guess, and one callback per group
// of reads. Guesses take few workers at a time, since what the disk has been asked for cannot be
// overtaken. A read that fails is tried once more; one that does not end is reported while its
// memory stays with the pool.
//
// It owns the order of reads and nothing else. The Source knows where the bytes lie, the caller
// where they go. Faulty wraps a Source and makes chosen reads go wrong, for the tests of
// whoever uses a pool.
package readpool
