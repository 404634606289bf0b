package host

import (
	mathbits "math/bits"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// How long an idle thread looks for work before it sleeps: longer than the stages take between two
// layers, and than the small operations between two large ones, so that no thread has to be woken
// within a token. Other goroutines may run now and then. A device that stays idle uses no processor
// time.
const (
	spinFor   = 100 * time.Microsecond
	spinYield = 10 * time.Microsecond
	spinLooks = 64 // between two looks at the clock: one to three microseconds
)

// spin waits for done until the thread has spent spinFor without work, of which *spent is over
// already. It reports whether done became true. Where that takes a few microseconds, as within a
// token, it calls neither the clock nor Go's scheduler.
func spin(spent *time.Duration, done func() bool) bool {
	var began, yielded time.Time
	for {
		for range spinLooks {
			if done() {
				return true
			}
			relax()
		}
		now := time.Now()
		if began.IsZero() {
			began, yielded = now, now
		}
		if *spent+now.Sub(began) > spinFor {
			*spent = spinFor
			return done()
		}
		if now.Sub(yielded) > spinYield {
			runtime.Gosched()
			yielded = now
		}
	}
}

// worker is a thread of a pool.
type worker struct {
	id      int // of its part
	scratch scratch
	idle    time.Duration // spent looking since it ran its last chunk
	sleeper sleeper
	_       [lineBytes]byte
	inside  atomic.Bool // it may be in the job; its caller waits until it is not
	_       [lineBytes]byte
}

// serve joins jobs until the pool ends.
func (p *pool) serve(w *worker) {
	debug.SetPanicOnFault(true) // weights may be a mapped file that lost its end
	seen := uint32(0)
	for {
		slept := p.await(w, seen)
		var upcoming stretch
		if p.quit.Load() {
			return
		}
		// The job's caller closes it before it looks who is inside. Swaps, here and below:
		// emulators of arm64 let a load pass a store before it, which that processor does not.
		w.inside.Swap(true)
		if turn := p.turn.Load(); joinable(turn) {
			seen = turn
			if slept {
				p.rouse(2)
			}
			if w.id < p.joining {
				if p.work(&w.scratch, w.id) {
					w.idle = 0
				}
				upcoming = p.parts[w.id].upcoming
			}
		}
		w.inside.Swap(false)
		if p.waiting.Load() {
			p.caller.wake()
		}
		p.fetch(upcoming, seen)
	}
}

// joinable reports whether workers may join the job of a turn.
func joinable(turn uint32) bool { return turn%2 == 1 }

// news reports whether there is a job that the worker has not seen.
func (p *pool) news(seen uint32) bool {
	turn := p.turn.Load()
	return turn != seen && joinable(turn)
}

// await waits for a job that the worker has not seen, or for the end of the pool. It reports
// whether the worker slept.
func (p *pool) await(w *worker, seen uint32) (slept bool) {
	news := func() bool { return p.news(seen) || p.quit.Load() }
	for !news() {
		if spin(&w.idle, news) {
			return slept
		}
		word, bit := &p.asleep[w.id/64], uint64(1)<<(w.id%64)
		word.Or(bit)
		if news() && word.And(^bit)&bit != 0 {
			return slept
		}
		w.sleeper.sleep() // whoever took the bit wakes it
		w.idle, slept = 0, true
	}
	return slept
}

// rouse wakes up to n sleeping workers, as long as the job wants more. Each of them wakes others in
// turn.
func (p *pool) rouse(n int) {
	for ; n > 0; n-- {
		if p.wanted.Load() <= 0 || p.wanted.Add(-1) < 0 || !p.rouseOne() {
			return
		}
	}
}

// rouseOne wakes the sleeping worker with the lowest number, if there is one.
func (p *pool) rouseOne() bool {
	for i := range p.asleep {
		word := &p.asleep[i]
		for bits := word.Load(); bits != 0; bits = word.Load() {
			low := bits & -bits
			if word.CompareAndSwap(bits, bits&^low) {
				p.workers[64*i+mathbits.TrailingZeros64(low)-1].sleeper.wake()
				return true
			}
		}
	}
	return false
}
