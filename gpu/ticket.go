package gpu

import (
	"sync"
	"sync/atomic"
)

// Tickets makes the tickets of a queue: those whose callbacks have returned are used again, so that
// in the steady state nothing is allocated. The zero value is ready for use, by many goroutines. T
// is what the queue notes with a ticket; it stays with the ticket's memory.
type Tickets[T any] struct {
	mu    sync.Mutex
	spare []*Pending[T]
}

// Pending is a Ticket of a queue that keeps Of with it.
type Pending[T any] struct {
	Of T

	from *Tickets[T]
	ns   atomic.Int64

	mu   sync.Mutex
	done bool
	err  error
	f    func(error)
}

// Get returns a ticket that is not done. With fresh it was made just now, and Of is zero.
func (t *Tickets[T]) Get() (p *Pending[T], fresh bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.spare) - 1; n >= 0 {
		p = t.spare[n]
		t.spare = t.spare[:n]
		return p, false
	}
	return &Pending[T]{from: t}, true
}

// OnDone calls f once when the work is complete, see Ticket.
func (p *Pending[T]) OnDone(f func(error)) {
	p.mu.Lock()
	if p.f != nil {
		p.mu.Unlock()
		panic("gpu: OnDone was called twice")
	}
	p.f = f
	done, err := p.done, p.err
	p.mu.Unlock()
	if done {
		f(err)
		p.recycle()
	}
}

// DeviceNS returns how long the work took, at least 1 once it is done.
func (p *Pending[T]) DeviceNS() int64 { return p.ns.Load() }

// Complete ends the work, which took ns nanoseconds, with nil or what failed. The queue calls it
// once, and does not touch the ticket afterwards.
func (p *Pending[T]) Complete(ns int64, err error) {
	p.ns.Store(max(1, ns))
	p.mu.Lock()
	p.done, p.err = true, err
	f := p.f
	p.mu.Unlock()
	if f != nil {
		f(err)
		p.recycle()
	}
}

// recycle takes back a ticket whose callback has returned.
func (p *Pending[T]) recycle() {
	p.mu.Lock()
	p.done, p.err, p.f = false, nil, nil
	p.mu.Unlock()
	p.ns.Store(0)
	p.from.mu.Lock()
	p.from.spare = append(p.from.spare, p)
	p.from.mu.Unlock()
}
