// Package membw measures how fast threads can read main memory: the limit of a computation that
// reads its weights once for every token.
//
// No single loop reads memory fastest on every processor. What counts is how many loads a core
// keeps in flight, and that depends on its prefetchers: two streams with PREFETCHNTA are the
// fastest way on a Zen 5, and on an Intel server core, where such prefetches bypass the second
// cache and its prefetcher, they reach less than half of what plain loads do. Measure therefore
// tries every loop that the processor runs (AVX-512 and AVX2, or NEON; 1 to 8 streams; with
// prefetches and without) and reports the fastest. Processors and builds without wide loads read
// one word of each line, which moves as much memory.
//
// Memory is backed by huge pages where the system has them. The threads take blocks of one array as
// they finish the last, so a thread whose core is busy with something else does not hold up the
// others. The figure is what programs reach, not what the memory modules could deliver. On a
// machine with several memory nodes pages lie on all of them by turns, as those of package host do.
//
// A benchmark that reports its share of the bandwidth calls Measure once, with the threads that it
// uses itself:
//
//	limit, err := membw.Measure(b.Context(), membw.Config{Threads: 2})
//	…
//	b.ReportMetric(100*bytesPerSecond/limit.Median, "bandwidth-%")
package membw
