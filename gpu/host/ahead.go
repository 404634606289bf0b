package host

import "sync/atomic"

// A thread that has nothing to do asks for the memory that it will read first in the next product, while others are busy with the
// small operations between: memory would idle meanwhile. Nothing waits for what is fetched, and nothing depends on it.
const (
	aheadBytes = 768 << 10 // for a thread: what stays in the second cache
	aheadRuns  = 24        // pieces of memory for a thread
	aheadStep  = 64        // lines asked for at a time; then the thread looks for work again
	aheadPrice = 20        // looks for work that a step takes as long as
)

// ahead is what threads may fetch. Plans are written while threads read, and queues that share the pool write at the same time: what a
// thread finds may be a mixture. That is harmless, since asking for memory faults nowhere and changes nothing.
type ahead struct {
	lines func(at uintptr, n int) // asks for n lines of the caches from at on; nil: nothing is fetched
	parts []aheadPart             // of the threads
}

// aheadPart is the runs of memory of one thread.
type aheadPart struct {
	plan atomic.Uint64 // counts plans
	runs atomic.Int32
	at   [aheadRuns]atomic.Uintptr
	size [aheadRuns]atomic.Int64 // lines
	_    [lineBytes]byte
}

// fetcher is how far a thread is in its part.
type fetcher struct {
	plan uint64
	run  int
	line int
}

// step asks for some lines of a thread's part. It reports whether there were any.
func (a *ahead) step(f *fetcher, thread int) bool {
	p := &a.parts[thread]
	if plan := p.plan.Load(); plan != f.plan {
		*f = fetcher{plan: plan}
	}
	if f.run >= int(p.runs.Load()) {
		return false
	}
	n := min(aheadStep, int(p.size[f.run].Load())-f.line)
	if n > 0 {
		a.lines(p.at[f.run].Load()+uintptr(f.line*lineBytes), n)
		f.line += n
		return true
	}
	f.run, f.line = f.run+1, 0
	return true
}

// begin empties all parts, for a plan that is written next.
func (a *ahead) begin() {
	for i := range a.parts {
		a.parts[i].runs.Store(0)
	}
}

// add gives a thread memory to fetch, behind what it has.
func (a *ahead) add(thread int, at uintptr, bytes int) {
	p := &a.parts[thread]
	n := p.runs.Load()
	if bytes <= 0 || n == aheadRuns {
		return
	}
	p.at[n].Store(at)
	p.size[n].Store(int64(chunks(bytes, lineBytes)))
	p.runs.Store(n + 1)
}

// publish tells the threads that a plan is written.
func (a *ahead) publish() {
	for i := range a.parts {
		a.parts[i].plan.Add(1)
	}
}
