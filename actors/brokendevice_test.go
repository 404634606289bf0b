package actors_test

import (
	"fmt"
	"sync/atomic"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
)

// brokenDevice makes the n-th buffer, submission or completion fail, counted from 1; 0 is none.
type brokenDevice struct {
	gpu.Device
	buffer, submit, complete int64

	buffers, submits atomic.Int64
}

func (d *brokenDevice) NewBuffer(n int) (gpu.Buffer, error) {
	if d.buffers.Add(1) == d.buffer {
		return nil, fmt.Errorf("%d bytes: %w", n, gpu.ErrOutOfMemory)
	}
	return d.Device.NewBuffer(n)
}

func (d *brokenDevice) NewQueue() (gpu.Queue, error) {
	q, err := d.Device.NewQueue()
	return &brokenQueue{q, d}, err
}

type brokenQueue struct {
	gpu.Queue
	d *brokenDevice
}

func (q *brokenQueue) Submit(c *gpu.Commands) (gpu.Ticket, error) {
	n := q.d.submits.Add(1)
	if n == q.d.submit {
		return nil, errBroken
	}
	t, err := q.Queue.Submit(c)
	if err == nil && n == q.d.complete {
		return &brokenTicket{t}, nil
	}
	return t, err
}

// brokenTicket belongs to work that failed.
type brokenTicket struct{ gpu.Ticket }

func (t *brokenTicket) OnDone(f func(error)) { t.Ticket.OnDone(func(error) { f(errBroken) }) }

// brokenCore panics at its n-th message, or returns an error.
type brokenCore struct {
	stages.Core
	left     int
	panics   bool
	happened *atomic.Bool
}

func (c *brokenCore) Step(in stages.Message, out *stages.Outbox) error {
	if c.left--; c.left != 0 {
		return c.Core.Step(in, out)
	}
	c.happened.Store(true)
	if c.panics {
		panic(errBroken)
	}
	return errBroken
}
