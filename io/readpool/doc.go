// Package readpool reads experts in parallel: a fixed number of workers, an unbounded queue in which reads that
// somebody waits for go before reads made on a guess, and one callback per group of reads.
//
// It owns the order of reads and nothing else. Where the bytes lie is the Source's business, where they go is the
// caller's. Faulty wraps a Source and makes chosen reads go wrong, for the tests of whoever uses a pool.
package readpool
