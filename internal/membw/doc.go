// Package membw measures how fast threads can read main memory: the limit of a computation that
// reads its weights once for every token.
//
// Its loops do nothing but load: AVX-512, AVX2 or NEON where there are any, two streams a thread
// with prefetches ahead, huge pages where the system gives them. The threads take blocks of one
// array as they get done, as the host device's threads take parts of a matrix, so that one whose
// core has other work to do does not hold up the rest. The figure is what programs reach, not what
// the memory modules could give. It knows nothing of NUMA: a block is where the system put it when
// some thread first wrote it.
//
// Benchmarks that tell their share of the bandwidth call Measure once, with the threads that they
// use:
//
//	limit, err := membw.Measure(b.Context(), membw.Config{Threads: 2})
//	…
//	b.ReportMetric(100*bytesPerSecond/limit.Median, "bandwidth-%")
package membw
